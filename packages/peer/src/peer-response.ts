// The answer of an owner as its caller gets it: judged by its head, and as a Response of the web.

import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { formatAddress } from "./connection.ts";
import { PeerError, PeerNoAnswerError, RpcFailure, StaleOwnerError } from "./errors.ts";
import { answerHeaders, checkVersion, isStale } from "./inner-request.ts";
import type { Peer } from "./tunnel-pool.ts";
import { webBody } from "./web-body.ts";

/** An answer whose head is there. */
export type InnerAnswer = Pick<Dispatcher.ResponseData, "statusCode" | "headers"> & { body: Readable };

/** Most characters of what a method says about its failure. */
const maxFailureLength = 1024;
const nullBodyStatus: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Lets an answer pass that is one; else its tunnel is cut.
 * @throws PeerVersionError (CELLKIT_PEER_VERSION), StaleOwnerError (CELLKIT_PEER_STALE_OWNER), PeerNoAnswerError
 *   (CELLKIT_PEER_NO_ANSWER)
 */
export function judgeAnswer({ address }: Peer, { statusCode, headers, body }: InnerAnswer): void {
  try {
    checkVersion(headers);
    if (isStale(statusCode, headers)) throw new StaleOwnerError(formatAddress(address), "stale route");
    if (statusCode < 200 || statusCode > 599)
      throw new PeerNoAnswerError(formatAddress(address), `status ${statusCode}`);
  } catch (error) {
    body.on("error", () => undefined).destroy();
    throw error;
  }
}

/** @throws PeerNoAnswerError (CELLKIT_PEER_NO_ANSWER) for a head that the web does not have; its tunnel is cut then */
export function toResponse({ address }: Peer, answer: InnerAnswer, method: string): Response {
  const { statusCode: status, headers, body } = answer;
  try {
    const hasBody = method !== "HEAD" && !nullBodyStatus.has(status);
    if (!hasBody) body.on("error", () => undefined).resume();
    return new Response(hasBody ? webBody(body) : null, { status, headers: answerHeaders(headers) });
  } catch (cause) {
    body.on("error", () => undefined).destroy();
    if (cause instanceof PeerError) throw cause;
    throw new PeerNoAnswerError(formatAddress(address), "its head is none of a response", { cause });
  }
}

/**
 * What a method answered.
 * @throws RpcFailure (CELLKIT_PEER_RPC_FAILED), PeerNoAnswerError (CELLKIT_PEER_NO_ANSWER)
 */
export function rpcResult({ address }: Peer, status: number, text: string): unknown {
  if (status !== 200) {
    const reason = text.replace(/^RPC failed: /, "").slice(0, maxFailureLength);
    throw new RpcFailure(reason === "" ? `the owner answered with status ${status}` : reason);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PeerNoAnswerError(formatAddress(address), "what it answers is no JSON", { cause });
  }
}
