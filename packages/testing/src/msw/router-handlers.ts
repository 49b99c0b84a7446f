import { parseToken, stringifyJson } from "@cellkit/execution";
import { HttpResponse, http } from "msw";
import { anything, checkMembers, shown } from "../core/given.ts";
import { createIdentity, type Identity } from "../dispatcher/hash.ts";
import { checkedRun, type RunFn, type RunMode } from "../dispatcher/running-execution.ts";
import { TestingOptionError } from "../errors.ts";
import { testClientToken } from "../tokens.ts";
import type { BackendOptions } from "./mocked-backend.ts";
import { MockedRouter, type RouterHandlers } from "./mocked-router.ts";

/** Options of {@link routerHandlers}. */
export interface RouterHandlerOptions {
  /** Where the router is: `http://host:port` or `https:`, perhaps with a path prefix. Take a host that cannot be resolved. */
  readonly url: string;
  /** @default testClientToken */
  readonly token?: string;
  /** A token for discovery alone. @default none */
  readonly capabilityToken?: string;
  /** How executions go: see `DispatcherOptions.run`. @default "succeed" */
  readonly run?: RunFn | RunMode;
  /** The dispatchers behind it. @default one that takes everything */
  readonly backends?: readonly BackendOptions[];
}

export interface ResolvedRouterHandlerOptions {
  readonly url: string;
  readonly token: string;
  readonly capabilityToken: string | undefined;
  readonly run: RunFn | RunMode;
  readonly backends: readonly BackendOptions[];
}

/**
 * A router with state, as msw handlers: it binds ids to bytes and backends, refuses as a router does, also at paths that routers do not
 * have, and its executions go on. It has no wire: what comes before a request is read (limits of heads, duplicate fields, paths that
 * URLs normalize) needs a real router.
 *
 * @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`)
 */
export function routerHandlers(options: RouterHandlerOptions): RouterHandlers {
  const resolved = resolve(options);
  let identity: Promise<Identity> | undefined;
  const router = new MockedRouter(resolved, () => (identity ??= createIdentity()));
  const prefix = new URL(resolved.url).pathname.replace(/\/$/, "");
  const handler = http.all(`${resolved.url}/*`, async ({ request }) => {
    const { pathname, search } = new URL(request.url);
    const answer = await router.serve({
      method: request.method,
      path: pathname.slice(prefix.length) + search,
      authorization: request.headers.get("authorization") ?? undefined,
      pin: request.headers.get("x-celln-backend") ?? undefined,
      preference: request.headers.get("prefer") ?? undefined,
      isEncoded: request.headers.has("transfer-encoding"),
      body: new Uint8Array(await request.arrayBuffer()),
    });
    if (answer === "reset") return HttpResponse.error();
    if (answer === undefined) return aborted(request.signal);
    const headers = { "content-type": "application/json", connection: "close" };
    return new HttpResponse(stringifyJson(answer.body), { status: answer.status, statusText: "OK", headers });
  });
  return {
    handlers: [handler],
    calls: router.calls,
    origins: router.origins,
    get runs() {
      return router.runs;
    },
    fault: (match, fault, times) => router.fault(match, fault, times),
    finish: (id, end, wait) => router.finish(id, end, wait),
    change: (index, backend) => backendAt(router, index).change(backend),
    forget: (index) => backendAt(router, index).forget(),
  };
}

function backendAt(router: MockedRouter, index: number) {
  const backend = router.backend(index);
  if (backend === undefined) throw new TestingOptionError("index", `is ${index}; there is no such backend`);
  return backend;
}

/** Nothing is answered until the caller gives up. */
function aborted(signal: AbortSignal): Promise<Response> {
  return new Promise((resolve) => {
    const end = () => resolve(HttpResponse.error());
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

const optionRules = {
  url: anything,
  token: anything,
  capabilityToken: anything,
  run: anything,
  backends: anything,
};

function resolve(options: RouterHandlerOptions): ResolvedRouterHandlerOptions {
  checkMembers("options", options, optionRules);
  const { token = testClientToken, capabilityToken } = options;
  if (!URL.canParse(options.url) || !/^https?:/.test(options.url)) {
    throw new TestingOptionError("url", `is ${shown(options.url)}; give an http or https URL`);
  }
  for (const [name, value] of Object.entries({ token, capabilityToken })) {
    const parsed = value === undefined ? undefined : parseToken(Buffer.from(value));
    if (parsed !== undefined && "problem" in parsed) throw new TestingOptionError(name, parsed.problem);
  }
  if (token === capabilityToken) {
    throw new TestingOptionError(
      "capabilityToken",
      "is the client token; a router refuses to serve with that",
    );
  }
  return {
    url: options.url.replace(/\/+$/, ""),
    token,
    capabilityToken,
    run: checkedRun(options.run ?? "succeed"),
    backends: options.backends ?? [{}],
  };
}
