/**
 * A call to a cell in the older generation of the protocol (2): one signed POST with the whole request in a JSON
 * envelope, the answer streamed. Client only; this package's nodes do not answer it.
 */
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { z } from "zod";
import type { ResolvedCell } from "./cell-address.ts";
import { connectTcp, formatAddress, type PeerAddress } from "./connection.ts";
import { peerHeader } from "./core/constants.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { isScope } from "./core/scope.ts";
import { signRequest } from "./core/sign.ts";
import { PeerNoAnswerError, PeerOptionError, PeerVersionError, StaleOwnerError } from "./errors.ts";
import { answerHeaders, isStale } from "./inner-request.ts";
import { oneConnection } from "./one-connection.ts";
import { nonce } from "./random-ids.ts";

const version = 2;

/** Header by which an owner answers that the handler accepted a WebSocket, which a 200 stands for. */
const socketHeader = "x-celld-ws-target";

/** Both sides hold the whole envelope in memory; its body is a third larger than what it carries. */
const defaultMaxBodyBytes = 64 * 1024 * 1024;

/** The node that is called. */
export interface ProtocolTwoNode {
  /** As in its record, which must say `peer_protocol` 2. */
  readonly node: string;
  readonly address: PeerAddress;
}

/** Options of {@link callProtocol2}. */
export interface ProtocolTwoOptions {
  readonly key: FleetKey;
  /** Who calls. @default "diagnostic" */
  readonly self?: string;
  /** The node is a guess with room rather than the owner. @default false */
  readonly capacityHandoff?: boolean;
  /** 32 lower-case hex digits by which the call is known. @default none */
  readonly requestId?: string;
  /** A longer body of the request is refused before anything is sent. @default 64 MiB */
  readonly maxBodyBytes?: number;
  /** @default 3_000 */
  readonly connectTimeoutMs?: number;
  /** Ends the call; the owner sees the connection go and stops the handler. @default the request's */
  readonly signal?: AbortSignal | undefined;
}

/** What the cell answered. */
export type ProtocolTwoAnswer =
  | { readonly kind: "response"; readonly response: Response }
  /** Status 101: the handler accepted a WebSocket, which waits at the owner under this id. */
  | { readonly kind: "socket"; readonly target: { readonly id: number; readonly scope: string } };

const socketTarget = z.object({ id: z.int().min(0), scope: z.string() });

/**
 * Sends a request to a cell at the node that owns it. Nothing is repeated. A refusal of the signature comes as the answer
 * it is, 401: the protocol does not set it apart from a cell's own (`diagnoseNode` tells).
 * @throws PeerUnreachableError, StaleOwnerError: nothing ran; PeerVersionError, PeerNoAnswerError: unknown; PeerOptionError
 *   for a scope or body that cannot be sent; the signal's reason
 */
export async function callProtocol2(
  { node, address }: ProtocolTwoNode,
  { scope, name }: ResolvedCell,
  request: Request,
  options: ProtocolTwoOptions,
): Promise<ProtocolTwoAnswer> {
  const { key, self = "diagnostic", connectTimeoutMs = 3_000, signal = request.signal } = options;
  if (!isScope(scope)) throw new PeerOptionError("scope", "is no scope");
  const target = `/__do/${scope}`;
  const body = await envelope(request, name, options);
  // Loaded here: a node, which makes no such calls, starts without it.
  const { Client } = await import("undici");
  const socket = await connectTcp(address, connectTimeoutMs, signal);
  const where = formatAddress(address);
  const client = new Client(`http://${where}`, {
    connect: oneConnection(socket, where),
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 65_536,
  });
  const end = (): void => {
    socket.destroy();
    void client.destroy();
  };
  try {
    const signed = signRequest({
      key,
      version,
      method: "POST",
      target,
      body,
      source: self,
      destination: node,
      timeMs: Date.now(),
      nonce: nonce(),
    });
    const answer = await client
      .request({
        method: "POST",
        path: target,
        headers: { ...signed, "content-type": "application/json" },
        body,
        signal,
      })
      .catch((cause: unknown) => {
        signal.throwIfAborted();
        throw new PeerNoAnswerError(where, "the connection failed", { cause });
      });
    answer.body.once("close", end);
    return judge(answer, scope, where, request.method);
  } catch (error) {
    end();
    throw error;
  }
}

/** The version before the status, and the stale marker on 409 only: an application may set it elsewhere. */
function judge(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  scope: string,
  where: string,
  method: string,
): ProtocolTwoAnswer {
  // What throws below destroys the connection, and with it the body.
  body.on("error", () => {});
  const spoken = headers[peerHeader.version];
  if (spoken !== String(version))
    throw new PeerVersionError(spoken === undefined ? undefined : String(spoken), version);
  if (isStale(statusCode, headers)) throw new StaleOwnerError(where, "stale route");
  const accepted = headers[socketHeader];
  if (statusCode === 200 && accepted !== undefined) {
    body.destroy();
    const target = socketTarget.safeParse(parsed(String(accepted)));
    if (!target.success || target.data.scope !== scope)
      throw new PeerNoAnswerError(where, "it names a WebSocket of another cell");
    return { kind: "socket", target: { id: target.data.id, scope } };
  }
  const kept = Object.fromEntries(Object.entries(headers).filter(([, value]) => isVisible(value)));
  const hasBody = method !== "HEAD" && ![204, 205, 304].includes(statusCode);
  if (!hasBody) body.resume();
  const stream = hasBody ? (Readable.toWeb(body) as ReadableStream<Uint8Array>) : null;
  return {
    kind: "response",
    response: new Response(stream, { status: statusCode, headers: answerHeaders(kept) }),
  };
}

function isVisible(value: string | string[] | undefined): boolean {
  return [value ?? ""].flat().every((each) => /^[\t\u0020-\u007e]*$/.test(each));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function envelope(
  request: Request,
  name: string | undefined,
  { capacityHandoff = false, requestId, maxBodyBytes = defaultMaxBodyBytes }: ProtocolTwoOptions,
): Promise<Buffer> {
  const body = await bounded(request, maxBodyBytes);
  const text = JSON.stringify({
    name: name ?? null,
    url: request.url,
    method: request.method,
    ...(body.length === 0 ? {} : { bodyBase64: body.toString("base64") }),
    headers: [...request.headers],
    requestId: requestId ?? null,
    capacityHandoff,
  });
  return Buffer.from(text);
}

async function bounded(request: Request, maxBodyBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength;
    if (length > maxBodyBytes) throw new PeerOptionError("body", `has over ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
