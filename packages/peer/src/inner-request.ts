// What a caller puts into a tunnel, and what it takes out of the answer.

import type { IncomingHttpHeaders } from "node:http";
import { isHopByHop, isReservedHeader } from "./call-headers.ts";
import { peerHeader } from "./core/constants.ts";
import { routeErrorHeader, staleOwnerMarker, tunnelVersion } from "./core/tunnel-names.ts";
import { PeerVersionError } from "./errors.ts";
import { tunnelVersionText } from "./wire.ts";

/** The cell that is called. */
export interface InnerTarget {
  readonly scope: string;
  /** Sent if it is visible ASCII: the header carries nothing else. */
  readonly name: string | undefined;
  readonly requestId: string;
}

const visibleAscii = /^[\u0021-\u007e]+$/;

/** Control headers, Host, then the application's headers without what only nodes may set; flat, as undici takes them. */
export function innerHeaders(target: InnerTarget, url: URL, headers: Iterable<[string, string]>): string[] {
  const inner = ["x-cells-scope", target.scope, "x-cells-request-id", target.requestId];
  if (target.name !== undefined && visibleAscii.test(target.name)) inner.push("x-cells-do-name", target.name);
  let host = url.host;
  for (const [name, value] of headers) {
    if (name === "host") host = value;
    else if (!isReservedHeader(name) && !isHopByHop(name)) inner.push(name, value);
  }
  inner.push("host", host);
  return inner;
}

/** Whether the answer says that nothing ran, since the node is not the owner: only with 409 (spec §14, weakness 15). */
export function isStale(status: number, headers: IncomingHttpHeaders): boolean {
  return status === 409 && headers[routeErrorHeader] === staleOwnerMarker;
}

/** @throws PeerVersionError (CELLKIT_PEER_VERSION) */
export function checkVersion(headers: IncomingHttpHeaders): void {
  const version = headers[peerHeader.version];
  if (version !== tunnelVersionText) {
    throw new PeerVersionError(version === undefined ? undefined : String(version), tunnelVersion);
  }
}

/** The headers that are the application's. */
export function answerHeaders(headers: IncomingHttpHeaders): Headers {
  const own = new Headers();
  for (const name in headers) {
    if (isReservedHeader(name) || isHopByHop(name)) continue;
    const value = headers[name];
    if (Array.isArray(value)) for (const each of value) own.append(name, each);
    else if (value !== undefined) own.append(name, value);
  }
  return own;
}
