// Which call a request line means (execution API, section 2.5). Paths are compared as sent.
import { isExecutionId } from "@cellkit/execution/contract";

/** A call of the router's API. */
export type Route =
  | { readonly kind: "submit" | "prewarm" | "capabilities" | "parents" | "scoped" | "none" }
  | { readonly kind: "read" | "audit" | "cancel"; readonly id: string };

const executionPath = /^\/v1\/executions\/([^/]+)(\/audit|\/cancel)?$/;
const fixed: Readonly<Record<string, Route>> = {
  "POST /v1/executions": { kind: "submit" },
  "POST /v1/artifacts/prewarm": { kind: "prewarm" },
  "GET /v1/capabilities": { kind: "capabilities" },
};

/** The call that a request means; `none` where there is none, which is answered 404. */
export function routeOf(method: string, path: string): Route {
  const known = fixed[`${method} ${path}`];
  if (known !== undefined) return known;
  if (path === "/v1/parents" || path.startsWith("/v1/parents/")) return { kind: "parents" };
  if (isScoped(path)) return { kind: "scoped" };
  const [, id, part] = executionPath.exec(path) ?? [];
  if (id === undefined || !isExecutionId(id)) return { kind: "none" };
  if (part === "/cancel") return method === "POST" ? { kind: "cancel", id } : { kind: "none" };
  if (method !== "GET") return { kind: "none" };
  return { kind: part === undefined ? "read" : "audit", id };
}

/** Whether a path is one of the scoped calls, which have rules of their own before any credential is read. */
export function isScoped(path: string): boolean {
  return path.startsWith("/v1/scoped/");
}
