// What a splice server can be told, and its defaults; resolved once, at the door.

import { drainRefusal, type LocalAnswer, unavailableAnswer } from "./core/answer.ts";
import { isToken } from "./core/bytes.ts";
import { framingFields } from "./core/fields.ts";
import { OptionError } from "./errors.ts";

/** Where a client's connection comes from. */
export interface ClientAddress {
  address: string;
  port: number;
}

/** What `local` is asked about: a request whose head has come in whole. */
export interface LocalRequest {
  method: string;
  /** Request target as sent, query included, one character a byte. */
  target: string;
}

/** A header field that is put into each forwarded request head; a client that sends it itself gets 400. */
export interface ClientHeader {
  /** Field name; secret where the upstream trusts it. */
  name: string;
  /** Value, sent as JSON in printable ASCII; asked once a connection. */
  value: (client: ClientAddress) => unknown;
}

/** A WebSocket close code and reason. */
export interface CloseReason {
  code: number;
  reason: string;
}

export interface SpliceServerOptions {
  /**
   * Answers a request here instead of forwarding it; undefined forwards. Asked once for each request, also while
   * draining, and before the refusal: so health is answered during a drain. It must not throw. Default: forwards all.
   */
  local?: (request: LocalRequest) => LocalAnswer | undefined;
  /** @default none */
  clientHeader?: ClientHeader;
  /** Beginnings of names, in lower case, of fields that are taken out of each forwarded request head. @default [] */
  strippedRequestFields?: readonly string[];
  /**
   * How long a client's connection may be silent between requests, and how long a client may take no byte of what is
   * sent to it; then it is cut. @default 75000
   */
  idleTimeoutMs?: number;
  /** How long a request head may take from its first byte; then 408. @default 30000 */
  headTimeoutMs?: number;
  /** The same for a head that had begun when the drain did; then the refusal. @default 5000 */
  drainHeadTimeoutMs?: number;
  /** How long a refused client is read on after our FIN, so that it sees the answer and no reset. @default 2000 */
  lingerMs?: number;
  /**
   * While draining, how long a connection whose answer could not announce the end stays open for one more (refused)
   * request before our FIN. @default 250
   */
  drainGraceMs?: number;
  /**
   * An upstream connection that was idle longer is not used again. workerd cuts at 15 s; a request must not be written
   * in that instant. @default 10000
   */
  upstreamReuseMs?: number;
  /** How long a client may take to answer a close frame of ours. @default 2000 */
  closeWaitMs?: number;
  /** Sent when the upstream of a WebSocket ends without a close frame. @default 1012 "owner unavailable" */
  ownerUnavailable?: CloseReason;
  /** What a new request gets while draining. @default drainRefusal */
  refusal?: LocalAnswer;
  /** What a request gets when `upstream()` answers undefined. @default 503, not run */
  unavailable?: LocalAnswer;
}

/** The options with nothing left open. */
export type ResolvedOptions = Required<Omit<SpliceServerOptions, "local" | "clientHeader">> &
  Pick<SpliceServerOptions, "local" | "clientHeader">;

/** @throws OptionError (CELLKIT_SPLICE_OPTION) */
export function resolveOptions(options: SpliceServerOptions): ResolvedOptions {
  const resolved: ResolvedOptions = {
    idleTimeoutMs: 75_000,
    headTimeoutMs: 30_000,
    drainHeadTimeoutMs: 5_000,
    strippedRequestFields: [],
    lingerMs: 2_000,
    drainGraceMs: 250,
    upstreamReuseMs: 10_000,
    closeWaitMs: 2_000,
    ownerUnavailable: { code: 1012, reason: "owner unavailable" },
    refusal: drainRefusal,
    unavailable: unavailableAnswer("destination_unavailable"),
    ...options,
  };
  for (const [name, value] of Object.entries(resolved)) {
    if (name.endsWith("Ms") && !(typeof value === "number" && value >= 0 && value <= maxTimerMs)) {
      throw new OptionError(name, `is ${String(value)}: use 0 to ${maxTimerMs} milliseconds`);
    }
  }
  if (resolved.clientHeader !== undefined && !isToken(resolved.clientHeader.name)) {
    throw new OptionError("clientHeader.name", `is "${resolved.clientHeader.name}": use a header field name`);
  }
  for (const prefix of resolved.strippedRequestFields) checkPrefix(prefix);
  return resolved;
}

/** Longest time that a timer of Node counts. */
const maxTimerMs = 2 ** 31 - 1;

function checkPrefix(prefix: string): void {
  if (!isToken(prefix) || prefix !== prefix.toLowerCase()) {
    throw new OptionError("strippedRequestFields", `has "${prefix}": use beginnings of names in lower case`);
  }
  const framing = framingFields.find((name) => name.startsWith(prefix));
  if (framing === undefined) return;
  throw new OptionError("strippedRequestFields", `has "${prefix}": ${framing} decides where a message ends`);
}
