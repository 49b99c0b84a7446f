// The control headers inside a tunnel (protocol 5): what the dialling node sets and the owner takes off, and what an
// application may not say in its answer.

import { isScope } from "./core/scope.ts";

/** Names that only nodes may set, as beginnings in lower case. */
const reservedPrefixes = ["x-cells-", "x-celld-"] as const;

/** Headers of one connection, which say nothing about the message (RFC 9110 §7.6.1). */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Whether the header speaks of the connection only. @param name in any case */
export function isHopByHop(name: string): boolean {
  return hopByHop.has(name) || hopByHop.has(name.toLowerCase());
}

/** What the control headers of one inner request say. */
export interface ControlHeaders {
  scope: string | undefined;
  name: string | undefined;
  requestId: string | undefined;
  capacityHandoff: boolean;
  rpcMethod: string | undefined;
  /** The same control header twice, or one with a value outside its form. */
  malformed: boolean;
}

/** Whether only nodes may set the header. @param name in any case */
export function isReservedHeader(name: string): boolean {
  // The second character decides for nearly every name, without a copy in lower case.
  if (name.charCodeAt(1) !== 0x2d) return false;
  const lower = name.toLowerCase();
  return reservedPrefixes.some((prefix) => lower.startsWith(prefix));
}

/** Takes every reserved header out of the pairs, in place, and answers what the control headers among them said. */
export function takeControlHeaders(rawHeaders: string[]): ControlHeaders {
  const taken: ControlHeaders = {
    scope: undefined,
    name: undefined,
    requestId: undefined,
    capacityHandoff: false,
    rpcMethod: undefined,
    malformed: false,
  };
  let kept = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    const value = rawHeaders[i + 1] ?? "";
    if (isReservedHeader(name)) take(taken, name.toLowerCase(), value);
    else {
      if (kept < i) {
        rawHeaders[kept] = name;
        rawHeaders[kept + 1] = value;
      }
      kept += 2;
    }
  }
  rawHeaders.length = kept;
  if (taken.scope !== undefined && !isScope(taken.scope)) taken.scope = undefined;
  return taken;
}

function take(taken: ControlHeaders, name: string, value: string): void {
  switch (name) {
    case "x-cells-scope":
      taken.malformed ||= taken.scope !== undefined;
      taken.scope = value;
      return;
    case "x-cells-do-name":
      taken.malformed ||= taken.name !== undefined;
      taken.name = value;
      return;
    case "x-cells-request-id":
      taken.malformed ||= taken.requestId !== undefined || !/^[0-9a-f]{32}$/.test(value);
      taken.requestId = value;
      return;
    case "x-cells-capacity-handoff":
      taken.capacityHandoff = true;
      return;
    case "x-cells-rpc-method":
      taken.malformed ||= taken.rpcMethod !== undefined;
      taken.rpcMethod = value;
      return;
    default:
  }
}
