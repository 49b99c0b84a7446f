/** Stores that are right but for one thing. */
import type { OpenLedger } from "../../src/conformance/index.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { LedgerMemory, openMemoryLedger } from "../../src/memory-ledger.ts";

/** Opens good ledgers, and changes each as a bug would. */
export function openWith(bug: (ledger: StoredLedger) => Partial<StoredLedger>): OpenLedger {
  const memories = new Map<string, LedgerMemory>();
  return async (place, options) => {
    const memory = memories.get(place) ?? new LedgerMemory();
    memories.set(place, memory);
    const good = await openMemoryLedger({ ...options, memory });
    const changed = bug(good);
    return new Proxy(good, {
      get: (target, property) => {
        const value: unknown = Reflect.get(changed, property) ?? Reflect.get(target, property, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}
