// Who may use a node's operator routes, which stop it or run its cells: whoever is on the same machine, and whoever can
// sign as a node of the fleet can.
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { peerHeader } from "./core/constants.ts";
import type { RequestVerifier } from "./core/verifier.ts";
import { type Refused, verifyRequest } from "./received-head.ts";

/** How it is judged. */
export interface OperatorAccess {
  /** Judges signed requests (version 5); undefined while the node has no key yet: then none is let in. */
  readonly verifier: RequestVerifier | undefined;
  /** Lets everybody in who reaches the listener. @default false */
  readonly open?: boolean;
  /** This node's wall clock, milliseconds since the Unix epoch. @default Date.now */
  readonly clock?: () => number;
}

const mappedPrefix = "::ffff:";

/**
 * Judges a request for an operator route. A signature is looked at wherever the request comes from; without one, only a
 * loopback connection is let in, by the socket's own address: no header says where a request comes from. A web page in
 * a browser on this machine is on loopback, too: what it sends is refused, by the fields with which browsers mark it,
 * and by a Host that is a name of its own making (DNS rebinding).
 *
 * @param readBody reads the whole body, undefined when it is too large; called only for a signed request
 * @returns why it is refused, or the body if it was read
 */
export async function judgeOperator(
  request: IncomingMessage,
  readBody: () => Promise<Uint8Array | undefined>,
  { verifier, open = false, clock = Date.now }: OperatorAccess,
): Promise<Refused | { readonly ok: true; readonly body?: Uint8Array }> {
  if (
    request.headers[peerHeader.version] !== undefined ||
    request.headers[peerHeader.signature] !== undefined
  ) {
    if (verifier === undefined) return refuse(503, "this node has no fleet key yet");
    return verifyRequest(request, readBody, { verifier, nowMs: clock() });
  }
  if (comesFromPage(request)) {
    return refuse(403, "operator routes take nothing from web pages");
  }
  if (open) return { ok: true };
  if (!isLoopback(request.socket.remoteAddress)) {
    return refuse(401, "peer authentication failed");
  }
  if (!isOwnName(request.headers.host)) {
    return refuse(403, "on loopback, Host is an IP address or localhost");
  }
  return { ok: true };
}

function refuse(status: number, message: string): Refused {
  return { ok: false, status, message };
}

/** What browsers add to requests that a page makes (Fetch standard: Origin; Fetch Metadata: Sec-Fetch-Site). */
function comesFromPage({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  return headers.origin !== undefined || (site !== undefined && site !== "none");
}

function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.startsWith(mappedPrefix) ? address.slice(mappedPrefix.length) : address;
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

function isOwnName(host: string | undefined): boolean {
  const name = host?.replace(/:\d*$/, "").toLowerCase() ?? "";
  return name === "localhost" || isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}
