// Which dispatchers there are: a fixed list, and what a name resolves to (execution API, section 4.2).
import { isIPv6 } from "node:net";
import { parseOrigin, printableAddress } from "../core/origin.ts";
import { RouterOptionError } from "../errors.ts";
import { SystemNames } from "./system-names.ts";
import { withinMs } from "./within-ms.ts";

/** Where the router learns its dispatchers from. */
export interface BackendSource {
  /** The origins known at this moment, in the order in which they are selected from. Never rejects. */
  origins(): Promise<readonly string[]>;
}

/** Dispatchers behind one name, all on one port: a headless Service of Kubernetes. */
export interface Discovery {
  readonly name: string;
  readonly port: number;
}

/** What {@link createBackendList} takes. */
export interface BackendListOptions {
  /** `http://host[:port]`, each exactly one dispatcher; slashes at the end are left out. Order matters, repetitions do not. */
  readonly origins?: readonly string[];
  /** A name that is looked up when it is used and the last answer is 5 seconds old. */
  readonly discovery?: Discovery;
  /** Looks a name up: all of its addresses. @default the system's names */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** Hears of each lookup. */
  readonly onEvent?: (event: DiscoveryEvent) => void;
}

/**
 * A lookup ended: with so many dispatchers, or with a problem, and then the last answer stays. One that has taken two seconds is told of as
 * `timeout`, and again when it ends after all.
 */
export interface DiscoveryEvent {
  readonly kind: "discovery";
  readonly name: string;
  /** Those found, or those kept. */
  readonly originCount: number;
  /** An error's code, or `timeout`; undefined when it went well. */
  readonly problem: string | undefined;
}

/** How long an answer counts. */
const refreshMs = 5_000;
/** How long a lookup is waited for from its beginning, by whoever asks meanwhile; afterwards they go on with what is known. */
const lookupWaitMs = 2_000;
/** The same where there is an answer already, which counts well enough. */
const renewalWaitMs = 500;

/**
 * Reads `NAME` or `NAME:PORT`; without a port it is 8787.
 * @throws RouterOptionError (CELLKIT_ROUTER_OPTION)
 */
export function parseDiscovery(text: string): Discovery {
  const [, name, port = "8787"] = /^([A-Za-z0-9_.-]{1,253})(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (name === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw new RouterOptionError(
      `${printableAddress(text)} is no NAME or NAME:PORT to discover dispatchers by`,
    );
  return { name, port: Number(port) };
}

/**
 * The usual source. A failed lookup keeps the last answer, since a gap in DNS must not take owners away. Where there is an answer, a lookup
 * is waited for half a second, and not at all behind one that failed or took longer: DNS that is down delays calls once, and not each.
 * @throws RouterOptionError (CELLKIT_ROUTER_OPTION) for an unusable origin, or when there is neither a list nor a name
 */
export function createBackendList(options: BackendListOptions): BackendSource {
  const fixed = [...new Set((options.origins ?? []).map(originOf))];
  if (fixed.length === 0 && options.discovery === undefined)
    throw new RouterOptionError("no dispatchers: give a list of origins or a name to discover them by");
  return options.discovery === undefined
    ? { origins: async () => fixed }
    : new DiscoveredBackends(fixed, options.discovery, options);
}

function originOf(text: string): string {
  const parsed = parseOrigin(text);
  if ("problem" in parsed)
    throw new RouterOptionError(`the backend ${printableAddress(text)} is ${parsed.problem}`);
  return parsed.origin;
}

class DiscoveredBackends implements BackendSource {
  readonly #fixed: readonly string[];
  readonly #discovery: Discovery;
  readonly #resolve: (name: string) => Promise<readonly string[]>;
  readonly #onEvent: (event: DiscoveryEvent) => void;
  #effective: readonly string[];
  #found: readonly string[] = [];
  #refreshAtMs = Number.NEGATIVE_INFINITY;
  #running: { readonly ended: Promise<void>; readonly startedMs: number } | undefined;
  #hasAnswer = false;
  /** The last lookup failed, or the one that runs has taken too long. */
  #isFailing = false;

  constructor(fixed: readonly string[], discovery: Discovery, options: BackendListOptions) {
    this.#fixed = fixed;
    this.#effective = fixed;
    this.#discovery = discovery;
    const names = new SystemNames();
    this.#resolve = options.resolve ?? ((name) => names.resolve(name, { isWhole: true }));
    this.#onEvent = options.onEvent ?? (() => undefined);
  }

  async origins(): Promise<readonly string[]> {
    const nowMs = performance.now();
    if (this.#running === undefined && nowMs >= this.#refreshAtMs) this.#begin(nowMs);
    if (this.#running !== undefined) {
      const { ended, startedMs } = this.#running;
      const waitMs = this.#hasAnswer ? (this.#isFailing ? 0 : renewalWaitMs) : lookupWaitMs;
      const leftMs = startedMs + waitMs - nowMs;
      if (leftMs > 0) await withinMs(leftMs, ended);
    }
    return this.#effective;
  }

  #begin(startedMs: number): void {
    const late = setTimeout(() => {
      this.#isFailing = true;
      this.#tell("timeout");
    }, lookupWaitMs).unref();
    const ended = this.#refresh().then((problem) => {
      clearTimeout(late);
      this.#running = undefined;
      this.#refreshAtMs = performance.now() + refreshMs;
      this.#isFailing = problem !== undefined;
      this.#tell(problem);
    });
    this.#running = { ended, startedMs };
  }

  /** Why it failed, as a code. */
  async #refresh(): Promise<string | undefined> {
    const { name, port } = this.#discovery;
    try {
      const addresses = await this.#resolve(name);
      const found = addresses.map((ip) => `http://${isIPv6(ip) ? `[${ip}]` : ip}:${port}`);
      this.#found = [...new Set(found)].sort(byBytes);
      this.#effective = [...new Set([...this.#fixed, ...this.#found])];
      this.#hasAnswer = true;
      return undefined;
    } catch (error) {
      return codeOf(error);
    }
  }

  #tell(problem: string | undefined): void {
    const { name } = this.#discovery;
    this.#onEvent({ kind: "discovery", name, originCount: this.#found.length, problem });
  }
}

function byBytes(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
