// What a call to a dispatcher asks for (execution API, section 10).

export const callKinds = [
  "health",
  "node",
  "capabilities",
  "submit",
  "read",
  "audit",
  "cancel",
  "prewarm",
  "drain",
  "other",
] as const;

/** The calls that a dispatcher serves; `other` is everything else: what it answers 404, and what is no whole request. */
export type CallKind = (typeof callKinds)[number];

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

/** A dispatcher takes whatever stands between prefix and suffix as an id: only routers have a grammar for them. */
export function routeOf(method: string, path: string): Route {
  const kind = fixed[`${method} ${path}`];
  if (kind !== undefined) return { kind };
  if (!path.startsWith("/v1/executions/")) return { kind: "other" };
  const rest = path.slice("/v1/executions/".length);
  if (method === "GET") {
    return rest.endsWith("/audit")
      ? { kind: "audit", id: rest.slice(0, -"/audit".length) }
      : { kind: "read", id: rest };
  }
  const cancels = method === "POST" && rest.endsWith("/cancel");
  return cancels ? { kind: "cancel", id: rest.slice(0, -"/cancel".length) } : { kind: "other" };
}
