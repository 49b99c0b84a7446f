// What passes, for each mode. A listener has one mode and the lists share no path, so no listener speaks two protocols.
//
// Every pattern spells out each byte that it takes. A query, a bare `?`, an escape, a dot segment, an absolute target or a
// byte outside ASCII therefore fits none of them: nothing is decoded, so nothing can decode to something else further in.

/** Which protocol a listener lets through. */
export type EdgeMode = "parent" | "execution";

/**
 * Which execution ids fit. `router`: what the router takes, 1 to 512 of `A-Z a-z 0-9 . _ -`, but not `.` and `..`.
 * `strict`: what the original edge takes, 1 to 128, the first of `A-Z a-z 0-9`, then those and `. _ : -`.
 */
export type IdGrammar = "router" | "strict";

/** One line of an allowlist. */
export interface AllowedRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** The path with its parameters by name: what logs and metrics say instead of the path. */
  readonly name: string;
  readonly pattern: RegExp;
}

const idPatterns: Readonly<Record<IdGrammar, string>> = {
  router: String.raw`(?!\.{1,2}(?:/|$))[A-Za-z0-9._-]{1,512}`,
  strict: "[A-Za-z0-9][A-Za-z0-9._:-]{0,127}",
};

const parentPatterns = { inc: "blake3:[0-9a-f]{64}", turn: "[A-Za-z0-9_-]{1,64}" };

const parentRoutes = [
  "POST /v1/parents",
  "GET /v1/parents/{inc}",
  "POST /v1/parents/{inc}/turns",
  "POST /v1/parents/{inc}/stop",
  "POST /v1/parents/{inc}/cancel",
  "GET /v1/parents/{inc}/turns/{turn}",
  "POST /v1/parents/{inc}/turns/{turn}/cancel",
].map((line) => routeOf(line, parentPatterns));

const executionRoutes = (ids: IdGrammar) =>
  [
    "POST /v1/executions",
    "GET /v1/capabilities",
    "GET /v1/health",
    "GET /v1/executions/{id}",
    "DELETE /v1/executions/{id}",
    "POST /v1/executions/{id}/cancel",
    "GET /v1/executions/{id}/audit",
  ].map((line) => routeOf(line, { id: idPatterns[ids] }));

/**
 * The allowlist of a mode.
 * @param ids only matters in execution mode. @default "router"
 */
export function allowedRoutes(mode: EdgeMode, ids: IdGrammar = "router"): readonly AllowedRoute[] {
  return mode === "parent" ? parentRoutes : executionRoutes(ids);
}

/** The line that a request fits, by method and target exactly as they were sent, or undefined. */
export function findRoute(
  routes: readonly AllowedRoute[],
  method: string,
  target: string,
): AllowedRoute | undefined {
  return routes.find((route) => route.method === method && route.pattern.test(target));
}

function routeOf(line: string, parameters: Readonly<Record<string, string>>): AllowedRoute {
  const [method, name] = line.split(" ") as [AllowedRoute["method"], string];
  const pattern = name.replaceAll(/\{(\w+)\}/g, (_, parameter: string) => parameters[parameter] as string);
  return { method, name, pattern: new RegExp(`^${pattern}$`) };
}
