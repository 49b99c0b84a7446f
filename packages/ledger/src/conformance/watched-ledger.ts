/** A ledger of the suite: it knows which calls have not ended, and says what the store does not have. */
import { inspect } from "node:util";
import { ConformanceError } from "../errors.ts";
import type { LedgerEntry, StoredLedger } from "../ledger.ts";

/** What has been asked and not been answered, by name. */
export class RunningCalls {
  readonly #names = new Map<Promise<unknown>, string>();

  async watch<T>(name: string, call: Promise<T>): Promise<T> {
    this.#names.set(call, name);
    try {
      return await call;
    } finally {
      this.#names.delete(call);
    }
  }

  names(): string[] {
    return [...new Set(this.#names.values())];
  }
}

const METHODS = [
  "claim",
  "lookup",
  "retire",
  "sweep",
  "count",
  "entries",
  "entry",
  "restore",
  "close",
  Symbol.asyncDispose,
] as const satisfies readonly (keyof StoredLedger)[];

/** Every method of a ledger that this one does not have. */
export function missingMethods(ledger: StoredLedger): string[] {
  return METHODS.filter((method) => typeof Reflect.get(ledger, method) !== "function").map(nameOf);
}

/** @throws ConformanceError if it is no object; a method that it does not have throws one when it is called */
export function watchLedger(ledger: StoredLedger, running: RunningCalls): StoredLedger {
  if (typeof ledger !== "object" || ledger === null)
    throw new ConformanceError(`opening: expected a StoredLedger, not ${inspect(ledger)}`);
  const get = (_: unknown, property: string | symbol): unknown => {
    const value: unknown = Reflect.get(ledger, property);
    const method = METHODS.find((name) => name === property);
    if (method === undefined) return value;
    const name = nameOf(method);
    if (typeof value !== "function")
      return () => {
        throw new ConformanceError(`this ledger has no method ${name}: a StoredLedger has it`);
      };
    return (...given: unknown[]) => {
      const answer: unknown = Reflect.apply(value, ledger, given);
      if (method === "entries") return watchEntries(answer as AsyncIterable<LedgerEntry>, running);
      return running.watch(name, Promise.resolve(answer));
    };
  };
  return new Proxy<StoredLedger>(Object.create(null), { get });
}

async function* watchEntries(
  entries: AsyncIterable<LedgerEntry>,
  running: RunningCalls,
): AsyncGenerator<LedgerEntry> {
  const iterator = entries[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await running.watch("entries", iterator.next());
    if (done === true) return;
    yield value;
  }
}

function nameOf(method: (typeof METHODS)[number]): string {
  return typeof method === "symbol" ? "[Symbol.asyncDispose]" : method;
}
