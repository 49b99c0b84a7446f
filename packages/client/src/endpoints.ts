import { ConfigurationError } from "./errors.ts";

/** One address of a fleet. */
export interface Endpoint {
  /** `http://10.0.0.1:8080`; only protocol, host and port count. */
  url: string | URL;
  /** Identity of the node; two endpoints with one id are one node. Default `host:port`. */
  id?: string;
  /** Share of the traffic relative to the others, above 0. Default 1. */
  weight?: number;
  /** True when several nodes hide behind the address (a ClusterIP, a load balancer): never set aside. Default false. */
  loadBalanced?: boolean;
}

/** Yields the full set whenever it is known or changed. */
export type EndpointSource = AsyncIterable<readonly Endpoint[]>;

/** An endpoint as the rest of the package sees it: checked, with every default filled in. */
export interface ResolvedEndpoint {
  readonly id: string;
  readonly url: URL;
  readonly weight: number;
  readonly loadBalanced: boolean;
}

/** A set that never changes, known at once. */
export class StaticEndpoints implements AsyncIterable<readonly Endpoint[]> {
  readonly list: readonly Endpoint[];

  constructor(list: readonly Endpoint[]) {
    this.list = list;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Endpoint[]> {
    yield this.list;
  }
}

/**
 * A fixed list of addresses; the same address twice is one node.
 * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG) for an empty list or an address that is no http or https URL
 */
export function staticEndpoints(list: ReadonlyArray<string | URL | Endpoint>): EndpointSource {
  return toStatic(list);
}

/** As {@link staticEndpoints}, with the type that says that the set is known. */
export function toStatic(list: ReadonlyArray<string | URL | Endpoint>): StaticEndpoints {
  const endpoints = list.map((entry) =>
    typeof entry === "string" || entry instanceof URL ? { url: entry } : { ...entry },
  );
  if (resolveEndpoints(endpoints).length === 0) {
    throw new ConfigurationError(
      "the list of endpoints is empty; name at least one, as in ['http://10.0.0.1:8080']",
    );
  }
  return new StaticEndpoints(endpoints);
}

/**
 * Checks endpoints, fills in defaults and drops duplicates (the first with an id wins).
 * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG)
 */
export function resolveEndpoints(endpoints: readonly Endpoint[]): ResolvedEndpoint[] {
  const byId = new Map<string, ResolvedEndpoint>();
  for (const { url: given, id, weight = 1, loadBalanced = false } of endpoints) {
    const url = URL.canParse(String(given)) ? new URL(given) : undefined;
    if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
      throw new ConfigurationError(`endpoint ${String(given)} is not a URL like http://10.0.0.1:8080`);
    }
    if (!(weight > 0 && Number.isFinite(weight))) {
      throw new ConfigurationError(`endpoint ${url.origin} has weight ${weight}; give a number above 0`);
    }
    const resolved = { id: id ?? addressOf(url), url, weight, loadBalanced };
    if (!byId.has(resolved.id)) byId.set(resolved.id, resolved);
  }
  return [...byId.values()];
}

/** `host:port` with the port always written out; IPv6 literals stay in brackets. */
export function addressOf(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === "https:" ? "443" : "80")}`;
}
