// A request of node:http as the verifier wants it.
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Accepted, ReceivedHead, RequestVerifier } from "./core/verifier.ts";
import type { PeerAnswer } from "./peer-answer.ts";
import { maxControlBodyBytes } from "./wire.ts";

/** The head with its headers as they came, so that one that came twice is seen. */
export function receivedHead({ method = "", url = "", rawHeaders }: IncomingMessage): ReceivedHead {
  const headers: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    headers.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
  }
  return { method, target: url, headers };
}

/** A request that is not let in, and what to answer. */
export type Refused = { readonly ok: false } & PeerAnswer;

/**
 * Judges a signed request with its body; the body is read only once the head has passed.
 * @param readBody answers undefined when there are too many bytes
 */
export async function verifyRequest(
  request: IncomingMessage,
  readBody: () => Promise<Uint8Array | undefined>,
  { verifier, nowMs }: { verifier: RequestVerifier; nowMs: number },
): Promise<(Accepted & { readonly body: Uint8Array }) | Refused> {
  const head = verifier.verifyHead(receivedHead(request), nowMs);
  if (!head.ok) return head;
  const body = await readBody();
  if (body === undefined) return { ok: false, status: 413, message: "request body too large" };
  const committed = head.commit(createHash("sha256").update(body).digest("hex"));
  return committed.ok ? { ok: true, source: head.source, body } : committed;
}

/**
 * The body of a control call; undefined when it has too many bytes.
 * @param timeoutMs in which all of it must have come
 * @throws when the connection is lost; it is cut when the time is over
 */
export async function readControlBody(
  request: IncomingMessage,
  timeoutMs = 10_000,
): Promise<Uint8Array | undefined> {
  const late = setTimeout(() => request.destroy(), timeoutMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += (chunk as Buffer).length;
      if (bytes > maxControlBodyBytes) return undefined;
      chunks.push(chunk as Buffer);
    }
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(chunks);
}
