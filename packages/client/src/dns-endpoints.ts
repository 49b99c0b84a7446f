import { lookup, Resolver } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { AddressSet, nameProblem, refreshMs } from "./core/address-set.ts";
import type { Endpoint, EndpointSource } from "./endpoints.ts";
import { ConfigurationError } from "./errors.ts";
import { events } from "./events.ts";

/** How {@link dnsEndpoints} asks. */
export interface DnsEndpointsOptions {
  /** Port of every node. */
  port: number;
  /** Default `http:`. */
  protocol?: "http:" | "https:";
  /** One family at a time: with `auto`, the default, IPv4 if there is any. A pod with both must not count twice. */
  family?: 4 | 6 | "auto";
  /** Default 1000. */
  minTtlMs?: number;
  /** Default 30000. */
  maxTtlMs?: number;
  /** Answers in a row without an address that remove it. Default 2. */
  missesToRemove?: number;
  /** Asks the system (getaddrinfo: search domains, /etc/hosts) every 5 s instead of a DNS server by TTL. Default false. */
  useLookup?: boolean;
  /** Default: one of its own. */
  resolver?: Resolver;
}

/** getaddrinfo tells no TTL. */
const LOOKUP_TTL_MS = 5_000;

interface Found {
  readonly addresses: readonly string[];
  readonly ttlMs: number;
}

/**
 * The nodes behind a DNS name, A or AAAA, followed by TTL. Errors and empty answers keep the last set and are told as
 * `fleet:endpoints` with `stale: true`.
 * @param name absolute: search domains are not applied
 * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG) for a short name, with what to write instead
 */
export function dnsEndpoints(name: string, options: DnsEndpointsOptions): EndpointSource {
  const resolved = {
    protocol: "http:" as const,
    family: "auto" as const,
    minTtlMs: 1_000,
    maxTtlMs: 30_000,
    missesToRemove: 2,
    useLookup: false,
    ...options,
  };
  const problem = resolved.useLookup ? undefined : nameProblem(name);
  if (problem !== undefined) throw new ConfigurationError(problem);
  if (!(Number.isInteger(resolved.port) && resolved.port > 0 && resolved.port < 65_536)) {
    throw new ConfigurationError(`port ${resolved.port} is none; give a number from 1 to 65535`);
  }
  return {
    [Symbol.asyncIterator]() {
      const stop = new AbortController();
      const generator = follow(name, resolved, stop.signal);
      return {
        next: () => generator.next(),
        // A generator that waits for its next refresh cannot be ended from outside: the signal ends the wait.
        return: () => {
          stop.abort();
          return generator.return(undefined);
        },
      };
    },
  };
}

type Resolved = Required<Omit<DnsEndpointsOptions, "resolver">> & Pick<DnsEndpointsOptions, "resolver">;

async function* follow(
  name: string,
  options: Resolved,
  signal: AbortSignal,
): AsyncGenerator<readonly Endpoint[], undefined> {
  const { protocol, port, minTtlMs, maxTtlMs } = options;
  const set = new AddressSet(options.missesToRemove);
  const ask = options.useLookup
    ? askSystem
    : askServer(options.resolver ?? new Resolver({ timeout: 2_000, tries: 2 }));
  while (!signal.aborted) {
    let ttlMs = 0;
    try {
      const found = await ask(name, options.family);
      ttlMs = found.ttlMs;
      if (found.addresses.length === 0) tellStale(name, undefined);
      if (set.answered(found.addresses)) {
        yield set.addresses.map((address) => ({
          url: `${protocol}//${isIPv6(address) ? `[${address}]` : address}:${port}`,
        }));
      }
    } catch (error) {
      tellStale(name, error);
    }
    const waitMs = refreshMs(ttlMs, minTtlMs, maxTtlMs, Math.random());
    await sleep(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
  return undefined;
}

function tellStale(name: string, error: unknown): void {
  if (events.endpoints.hasSubscribers) {
    events.endpoints.publish({ added: [], removed: [], stale: true, name, error });
  }
}

async function askSystem(name: string, family: Resolved["family"]): Promise<Found> {
  const all = await lookup(name, { all: true, family: family === "auto" ? 0 : family });
  const four = all.filter((entry) => entry.family === 4);
  const chosen = family === "auto" && four.length > 0 ? four : all;
  return { addresses: chosen.map(({ address }) => address), ttlMs: LOOKUP_TTL_MS };
}

function askServer(resolver: Resolver): (name: string, family: Resolved["family"]) => Promise<Found> {
  const resolve = async (name: string, family: 4 | 6): Promise<Found> => {
    const records = await (family === 4
      ? resolver.resolve4(name, { ttl: true })
      : resolver.resolve6(name, { ttl: true }));
    const ttlMs = Math.min(...records.map(({ ttl }) => ttl)) * 1_000;
    return { addresses: records.map(({ address }) => address), ttlMs: records.length === 0 ? 0 : ttlMs };
  };
  return async (name, family) => {
    // c-ares wants no dot at the end, though the name is absolute.
    const absolute = name.replace(/\.$/, "");
    if (family !== "auto") return resolve(absolute, family);
    try {
      const four = await resolve(absolute, 4);
      if (four.addresses.length > 0) return four;
    } catch (error) {
      // No IPv4 is an answer; a server that fails is not, and must not turn the fleet to its other addresses.
      if ((error as NodeJS.ErrnoException).code !== "ENODATA") throw error;
    }
    return resolve(absolute, 6);
  };
}
