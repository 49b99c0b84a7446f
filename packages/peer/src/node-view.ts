/** What a node says of itself to anybody: its `/state`, and whether it is being stopped. Nothing of it is proved. */
import { z } from "zod";
import type { PeerAddress } from "./connection.ts";
import { PeerNoAnswerError } from "./errors.ts";
import { type ExchangeAnswer, type ExchangeBounds, exchange } from "./exchange.ts";

/** A node's own words. A member is undefined when it does not say. */
export interface NodeView {
  /** The answer looks like a node's. */
  readonly isNode: boolean;
  readonly node: string | undefined;
  readonly version: string | undefined;
  readonly draining: boolean | undefined;
  /** State of what runs the cells: `ready`, `starting`, … */
  readonly runtime: string | undefined;
}

/** The state lists every cell of a node, so that it may be long. */
const bounds = { connectTimeoutMs: 3_000, totalTimeoutMs: 5_000, maxAnswerBytes: 8 * 1024 * 1024 } as const;

const shortText = z.string().max(200).optional().catch(undefined);
const stateSchema = z.object({
  ownership: z.string(),
  node: shortText,
  version: shortText,
  draining: z.boolean().optional().catch(undefined),
  runtime: z.object({ state: shortText }).optional().catch(undefined),
});
const drainingSchema = z.object({ draining: z.literal(true) });

/**
 * Looks at a node.
 * @throws PeerUnreachableError (CELLKIT_PEER_UNREACHABLE), and the signal's reason
 */
export async function viewNode(address: PeerAddress, signal?: AbortSignal): Promise<NodeView> {
  const state = stateSchema.safeParse(json(await ask(address, "/state", signal)));
  const said = state.success ? state.data : undefined;
  return {
    isNode: said !== undefined,
    node: said?.node,
    version: said?.version,
    runtime: said?.runtime?.state,
    // Nodes that do not say it in their state refuse all other paths while they are being stopped.
    draining: said?.draining ?? (await refusesAsDraining(address, signal)),
  };
}

async function refusesAsDraining(
  address: PeerAddress,
  signal: AbortSignal | undefined,
): Promise<boolean | undefined> {
  const answer = await ask(address, "/__celld/no-such-path", signal);
  if (answer === undefined) return undefined;
  return answer.status === 503 && drainingSchema.safeParse(json(answer)).success;
}

/** Undefined when it takes the connection but does not answer: the probe will tell more. */
async function ask(
  address: PeerAddress,
  target: string,
  signal: AbortSignal | undefined,
): Promise<ExchangeAnswer | undefined> {
  const all: ExchangeBounds = { ...bounds, signal };
  try {
    return await exchange(address, { method: "GET", target, headers: {} }, all);
  } catch (error) {
    if (error instanceof PeerNoAnswerError) return undefined;
    throw error;
  }
}

function json(answer: ExchangeAnswer | undefined): unknown {
  try {
    return JSON.parse(answer?.text ?? "");
  } catch {
    return undefined;
  }
}
