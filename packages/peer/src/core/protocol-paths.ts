// Every path of the two generations of the protocol, and what a node of ours does with it. The one table of its kind:
// docs/protocol/internal-listener.md is held against it by a test.
import type { PeerVersion } from "./constants.ts";

/** What a node does with a path: it is served, or a call of it is refused. */
type PathUse = "tunnel" | "probe" | "cancel" | "refused";

/** A line of the table. */
export interface ProtocolPath {
  /** Exact, or everything below with a trailing `/*`. */
  readonly path: string;
  /** The generation whose calls have this path. */
  readonly version: PeerVersion;
  readonly use: PathUse;
}

export const protocolPaths: readonly ProtocolPath[] = [
  { path: "/peer/tunnel", version: 5, use: "tunnel" },
  { path: "/peer/probe", version: 5, use: "probe" },
  { path: "/peer/abort/*", version: 5, use: "cancel" },
  { path: "/peer/handoff", version: 5, use: "refused" },
  { path: "/peer/log/*", version: 5, use: "refused" },
  { path: "/runtime/*", version: 5, use: "refused" },
  { path: "/__celld/probe", version: 2, use: "probe" },
  { path: "/__do/*", version: 2, use: "refused" },
  { path: "/__rpc/*", version: 2, use: "refused" },
  { path: "/__ws/*", version: 2, use: "refused" },
  { path: "/__abort/*", version: 2, use: "refused" },
  { path: "/__log/*", version: 2, use: "refused" },
  { path: "/__d1/*", version: 2, use: "refused" },
];

/** The line of a request target (path and query, nothing decoded); undefined when it is none of the protocol's. */
export function protocolPath(target: string): ProtocolPath | undefined {
  const path = target.replace(/\?.*$/s, "");
  return protocolPaths.find((line) =>
    line.path.endsWith("/*") ? path.startsWith(line.path.slice(0, -1)) : path === line.path,
  );
}
