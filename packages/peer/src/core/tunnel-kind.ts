/** What a tunnel carries: forwarded fetches, forwarded RPC calls, or (ours) the raw bytes of the road between engines. */
export type TunnelKind = "do" | "rpc" | "cluster";

const kinds: ReadonlySet<string> = new Set<TunnelKind>(["do", "rpc", "cluster"]);

/** Whether a header's value names a kind. */
export function isTunnelKind(text: string | undefined): text is TunnelKind {
  return text !== undefined && kinds.has(text);
}
