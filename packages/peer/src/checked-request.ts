// What a caller may not ask for is told before anything is sent.

import { PeerError, PeerOptionError, TunnelLostError } from "./errors.ts";

/** Errors of undici about what it was given, before it wrote any of it. */
const argumentCodes: ReadonlySet<unknown> = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"]);

/** @throws PeerOptionError (CELLKIT_PEER_OPTION) for another scheme than `http:` and `https:` */
export function checkedUrl(text: string): URL {
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new PeerOptionError(
      "url",
      `has the scheme ${url.protocol} Use http: or https:, for WebSockets, too`,
    );
  }
  return url;
}

/** The URL as a cell sees it. */
export function withoutFragment(url: URL): string {
  return url.hash === "" ? url.href : url.href.slice(0, -url.hash.length);
}

/**
 * @param bytes of the body, undefined when it is streamed
 * @throws PeerOptionError (CELLKIT_PEER_OPTION) for a content-length that is none, or not that of the body
 */
export function checkContentLength(text: string | null, bytes: number | undefined): void {
  if (text === null) return;
  if (!/^\d{1,15}$/.test(text)) throw new PeerOptionError("content-length", `is ${JSON.stringify(text)}`);
  if (bytes !== undefined && Number(text) !== bytes) {
    throw new PeerOptionError("content-length", `is ${text}, and the body has ${bytes} bytes`);
  }
}

/** The arguments of an RPC as JSON. @throws PeerOptionError (CELLKIT_PEER_OPTION) */
export function jsonArguments(args: readonly unknown[]): string {
  try {
    return JSON.stringify(args);
  } catch (cause) {
    throw new PeerOptionError("args", "have no JSON form", { cause });
  }
}

/** The error of a call that got no answer, as one of this package. */
export function callError(error: unknown): PeerError {
  if (error instanceof PeerError) return error;
  const message = error instanceof Error ? error.message : "it failed";
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (argumentCodes.has(code)) {
    return new PeerOptionError("request", `cannot be sent (${message})`, { cause: error });
  }
  return new TunnelLostError(message, { cause: error });
}
