// One lookup at a time for each name, whoever asks: calls that come meanwhile share it, and those behind it have its answer for a while.
import { isIP, isIPv6, type LookupFunction } from "node:net";
import { isNone, lookupFailure } from "./system-names.ts";
import { withinMs } from "./within-ms.ts";

/** How long an answer counts. */
const keptMs = 5_000;
/** How long a failure does. */
const failureKeptMs = 1_000;
/** How long a new lookup is waited for where there was one before. */
const renewalWaitMs = 500;
/** How many names are remembered. */
const maxNameCount = 4_096;

type Addresses = readonly [string, ...string[]];

interface Entry {
  /** The last good answer: kept while nobody says anything, and not once it is said that there is no such name. */
  known: Addresses | undefined;
  /** Why the last lookup failed. */
  error: Error | undefined;
  renewAtMs: number;
  running: { readonly ended: Promise<void>; readonly startedMs: number } | undefined;
}

/** Lookups of names that many calls need. */
export class SharedLookups {
  readonly #resolve: (name: string) => Promise<readonly string[]>;
  readonly #entries = new Map<string, Entry>();

  /** @param resolve the addresses of a name; errors as those of `SystemNames` */
  constructor(resolve: (name: string) => Promise<readonly string[]>) {
    this.#resolve = resolve;
  }

  /** For sockets. */
  readonly lookup: LookupFunction = (name, { all }, callback) => {
    this.find(name).then(
      ([first, ...more]) => {
        if (all === true) callback(null, [first, ...more].map(withFamily));
        else callback(null, first, familyOf(first));
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };

  /**
   * The addresses of a name. The first lookup is waited for; a later one for half a second, and not at all behind one that failed for
   * anything but that there is no such name. Then what was known before counts.
   */
  async find(name: string): Promise<Addresses> {
    if (isIP(name) !== 0) return [name];
    const nowMs = performance.now();
    const entry = this.#entryOf(name);
    if (entry.running === undefined && nowMs >= entry.renewAtMs) this.#begin(name, entry, nowMs);
    if (entry.running !== undefined) {
      const { ended, startedMs } = entry.running;
      const isFirst = entry.known === undefined && entry.error === undefined;
      const waitMs = entry.error === undefined || isNone(entry.error) ? renewalWaitMs : 0;
      const leftMs = startedMs + waitMs - nowMs;
      if (isFirst) await ended;
      else if (leftMs > 0) await withinMs(leftMs, ended);
    }
    if (entry.known !== undefined) return entry.known;
    throw entry.error ?? lookupFailure("ECANCELLED", name);
  }

  /** The same, but waited for no longer than that: `ETIMEOUT`. */
  async findWithin(boundMs: number, name: string): Promise<Addresses> {
    let found: Addresses | undefined;
    const finding = this.find(name).then((addresses) => {
      found = addresses;
    });
    await withinMs(boundMs, finding);
    if (found === undefined) throw lookupFailure("ETIMEOUT", name);
    return found;
  }

  #entryOf(name: string): Entry {
    const found = this.#entries.get(name);
    if (found !== undefined) return found;
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= maxNameCount && oldest !== undefined) this.#entries.delete(oldest);
    const entry: Entry = { known: undefined, error: undefined, renewAtMs: 0, running: undefined };
    this.#entries.set(name, entry);
    return entry;
  }

  #begin(name: string, entry: Entry, startedMs: number): void {
    const ended = this.#resolve(name)
      .then(([first, ...more]) => {
        if (first === undefined) throw lookupFailure("ENOTFOUND", name);
        entry.known = [first, ...more];
        entry.error = undefined;
      })
      .catch((error: Error) => {
        // An address that the name has no more may be somebody else's by now: no token goes there.
        if (isNone(error)) entry.known = undefined;
        entry.error = error;
      })
      .then(() => {
        entry.running = undefined;
        entry.renewAtMs = performance.now() + (entry.error === undefined ? keptMs : failureKeptMs);
      });
    entry.running = { ended, startedMs };
  }
}

/** A lookup function as a promise of its addresses. */
export function resolveBy(lookup: LookupFunction): (name: string) => Promise<readonly string[]> {
  return (name) =>
    new Promise((resolve, reject) =>
      lookup(name, { all: true }, (error, found) => {
        if (error !== null) reject(error);
        else resolve(typeof found === "string" ? [found] : found.map(({ address }) => address));
      }),
    );
}

function familyOf(address: string): 4 | 6 {
  return isIPv6(address) ? 6 : 4;
}

function withFamily(address: string): { address: string; family: 4 | 6 } {
  return { address, family: familyOf(address) };
}
