// Looks names up as the system does: in its hosts file, then in DNS with its servers and its search list. `getaddrinfo` would do all of it,
// in a thread that nothing takes back: a name that DNS is silent about holds one of the pool's few for ten seconds and more, so that other
// names wait behind it, and the process cannot end. So DNS is asked by c-ares, which needs no thread and can be given up.
import { lookup, Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { hostsAddresses, parseSearchRules, wholeNames } from "../core/resolver-files.ts";

/** What {@link SystemNames} are made with. All of it has defaults, for tests. */
export interface SystemNamesOptions {
  /** @default "/etc/hosts" */
  readonly hostsPath?: string;
  /** @default "/etc/resolv.conf" */
  readonly resolverPath?: string;
  /** `address:port`. @default those of the system */
  readonly servers?: readonly string[];
  /** What else knows names. @default getaddrinfo, for what neither hosts nor DNS has: the names of mDNS, LDAP, other systems */
  readonly elsewhere?: (name: string) => Promise<readonly string[]>;
  /** A whole lookup. @default 2_500 */
  readonly totalMs?: number;
}

/** How long each server is waited for, each of two times. */
const timeoutMs = 900;

/** The system's names. */
export class SystemNames {
  readonly #options: Required<Omit<SystemNamesOptions, "servers">> & Pick<SystemNamesOptions, "servers">;
  readonly #running = new Set<Resolver>();
  /** One at a time, so that at most one thread of the pool is held. */
  #elsewhere: Promise<unknown> = Promise.resolve();

  constructor(options: SystemNamesOptions = {}) {
    this.#options = {
      hostsPath: "/etc/hosts",
      resolverPath: "/etc/resolv.conf",
      elsewhere: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
      totalMs: 2_500,
      ...options,
    };
  }

  /**
   * The addresses of a name: IPv4 before IPv6, unless this machine has IPv6 alone.
   * @param isWhole all of them: half an answer of DNS counts as none
   * @throws an error with a code: `ENOTFOUND` where everybody says that there is no such name, others where somebody did not say
   */
  async resolve(name: string, { isWhole = false } = {}): Promise<readonly string[]> {
    const { hostsPath, servers, totalMs } = this.#options;
    if (isIP(name) !== 0) return [name];
    const found = hostsAddresses(await textOf(hostsPath), name).filter((address) => isIP(address) !== 0);
    if (found.length > 0) return byKind(found);
    if (/^(?:.+\.)?localhost\.?$/i.test(name)) return ["127.0.0.1"];
    const resolver = dnsResolver(servers);
    this.#running.add(resolver);
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      resolver.cancel();
      late.reject(lookupFailure("ETIMEOUT", name));
    }, totalMs);
    try {
      return await Promise.race([this.#search(resolver, name, isWhole), late.promise]);
    } finally {
      clearTimeout(timer);
      this.#running.delete(resolver);
    }
  }

  /** Gives up what runs. */
  close(): void {
    for (const resolver of this.#running) resolver.cancel();
  }

  async #search(resolver: Resolver, name: string, isWhole: boolean): Promise<readonly string[]> {
    const rules = parseSearchRules(await textOf(this.#options.resolverPath));
    let failed: unknown;
    for (const whole of wholeNames(name, rules)) {
      try {
        return await askDns(resolver, whole, { isWhole });
      } catch (error) {
        if (isNone(error)) continue;
        failed ??= error;
        // A server that fails for one domain may know the next; one that is silent is silent.
        if (codeOf(error) !== "ESERVFAIL") break;
      }
    }
    // Who can be asked, and does not know it, answers `getaddrinfo` soon, too.
    if (failed !== undefined && codeOf(failed) !== "ECONNREFUSED") throw failed;
    const elsewhere = this.#elsewhere.then(() => this.#options.elsewhere(name));
    this.#elsewhere = elsewhere.catch(() => undefined);
    return elsewhere;
  }
}

/** Whether an error says that there is no such name, rather than that nobody said anything. */
export function isNone(error: unknown): boolean {
  return ["ENOTFOUND", "ENODATA"].includes(codeOf(error) ?? "");
}

/** Asks DNS alone. @param servers `address:port`, in place of the system's */
export function dnsResolver(servers?: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return resolver;
}

/**
 * The addresses of a whole name, IPv4 before IPv6 as in {@link SystemNames.resolve}. Rejects as DNS does where there is none.
 * @param isWhole all of them: half an answer counts as none
 */
export async function askDns(
  resolver: Resolver,
  name: string,
  { isWhole }: { readonly isWhole: boolean },
): Promise<readonly string[]> {
  const four = resolver.resolve4(name);
  const six = resolver.resolve6(name);
  const answers = hasIPv4() ? [four, six] : [six, four];
  // Each is looked at when its turn comes, and one may have no turn.
  for (const answer of answers) answer.catch(() => undefined);
  const found: string[] = [];
  let failed: unknown;
  let none: unknown;
  for (const answer of answers) {
    if (found.length > 0 && !isWhole) break;
    try {
      found.push(...(await answer));
    } catch (error) {
      if (isNone(error)) none ??= error;
      else failed ??= error;
    }
  }
  if (failed !== undefined && (isWhole || found.length === 0)) throw failed;
  if (found.length === 0) throw none ?? lookupFailure("ENOTFOUND", name);
  return found;
}

/** Those first of whose kind this machine has one. */
function byKind(addresses: readonly string[]): readonly string[] {
  const four = addresses.filter((address) => !isIPv6(address));
  const six = addresses.filter(isIPv6);
  return hasIPv4() ? [...four, ...six] : [...six, ...four];
}

/** Whether this machine has an address of IPv4 beside its own loop, or none of either kind. */
function hasIPv4(): boolean {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const outer = addresses.filter(({ internal }) => !internal);
  return outer.length === 0 || outer.some(({ address }) => !isIPv6(address));
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "latin1");
  } catch (error) {
    // A system without such a file has its names elsewhere.
    if (codeOf(error) === "ENOENT") return "";
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

/** A failed lookup as Node's own tell it, since sockets and causes carry both alike. */
export function lookupFailure(code: string, name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code} ${name}`), { code });
}
