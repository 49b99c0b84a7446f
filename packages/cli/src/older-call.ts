// A call to a cell of a fleet that speaks the older generation of the protocol: to the owner that its record names, else to
// any node, which claims the cell if it has room.
import {
  type CellAddress,
  callProtocol2,
  currentScript,
  type FleetKey,
  type FleetStore,
  NodeDirectory,
  type NodeRecord,
  PeerUnreachableError,
  type ProtocolTwoAnswer,
  parsePeerAddress,
  resolveCell,
  StaleOwnerError,
} from "@cellkit/peer";
import { z } from "zod";

const ownerSchema = z.object({ node: z.string(), epoch: z.int().min(0) });
const maxOwnerBytes = 4_096;

/** A call, and how to make it. */
export interface OlderCall {
  readonly cell: CellAddress;
  /** Asked for each attempt: a request is used up by one. */
  readonly request: () => Request;
  /** Whether it may be asked twice: a stream is there once. */
  readonly repeatable: boolean;
  readonly key: FleetKey;
  readonly script: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Makes the call; once more where it is proven that nothing ran.
 * @throws what the attempt threw, NoLiveNodeError, and what the store throws
 */
export async function callOlder(store: FleetStore, call: OlderCall): Promise<ProtocolTwoAnswer> {
  const { cell, request, repeatable, key, signal } = call;
  const resolved = resolveCell(call.script ?? (await currentScript(store, signal)), cell);
  const directory = new NodeDirectory(store, { cacheMs: 0 });
  const attempt = async (except: ReadonlySet<string>): Promise<ProtocolTwoAnswer> => {
    const owner = await ownerOf(store, directory, resolved.scope, signal);
    const node = owner ?? (await directory.pick({ peerProtocol: 2, except, signal }));
    const where = { node: node.node, address: parsePeerAddress(node.addr) };
    try {
      return await callProtocol2(where, resolved, request(), {
        key,
        signal,
        capacityHandoff: owner === undefined,
      });
    } catch (error) {
      const provenNotRun = error instanceof StaleOwnerError || error instanceof PeerUnreachableError;
      if (!provenNotRun || !repeatable || except.size > 0) throw error;
      return attempt(new Set([node.node]));
    }
  };
  return attempt(new Set());
}

/** The live node that the cell's record names, if it may be called in this generation. */
async function ownerOf(
  store: FleetStore,
  directory: NodeDirectory,
  scope: string,
  signal: AbortSignal,
): Promise<NodeRecord | undefined> {
  const object = await store.get(`cells/${scope}/own.json`, { maxBytes: maxOwnerBytes, signal });
  if (object === undefined) return undefined;
  const { node } = ownerSchema.parse(JSON.parse(new TextDecoder().decode(object.body)));
  const { live } = await directory.list({ signal });
  return live.find((record) => record.node === node && record.peerProtocol === 2);
}
