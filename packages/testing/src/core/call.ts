// What a call to a dispatcher asks for (execution API, section 10).

/** The calls that a dispatcher serves; `other` is everything else, which it answers 404. */
export type CallKind =
  | "health"
  | "node"
  | "capabilities"
  | "submit"
  | "read"
  | "audit"
  | "cancel"
  | "prewarm"
  | "drain"
  | "other";

/** Calls that observe. A router makes them when it likes, so a script passes over them unless it names their kind. */
export const observations: readonly CallKind[] = ["health", "node", "capabilities"];

/** What a request line asks for. */
export interface Route {
  readonly kind: CallKind;
  /** The execution, where the path names one. */
  readonly id?: string;
}

const fixed: Readonly<Record<string, CallKind>> = {
  "GET /v1/health": "health",
  "GET /v1/node": "node",
  "GET /v1/capabilities": "capabilities",
  "POST /v1/executions": "submit",
  "POST /v1/artifacts/prewarm": "prewarm",
  "POST /v1/drain": "drain",
};

/** A dispatcher takes any id between prefix and suffix: only routers have a grammar for them. */
export function routeOf(method: string, path: string): Route {
  const kind = fixed[`${method} ${path}`];
  if (kind !== undefined) return { kind };
  if (!path.startsWith("/v1/executions/")) return { kind: "other" };
  const rest = path.slice("/v1/executions/".length);
  if (method === "GET") {
    return rest.endsWith("/audit") ? named("audit", rest.slice(0, -"/audit".length)) : named("read", rest);
  }
  const cancels = method === "POST" && rest.endsWith("/cancel");
  return cancels ? named("cancel", rest.slice(0, -"/cancel".length)) : { kind: "other" };
}

function named(kind: CallKind, id: string): Route {
  return id === "" || id.includes("/") ? { kind: "other" } : { kind, id };
}
