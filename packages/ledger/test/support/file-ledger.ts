/** A store for the tests of the crash rounds themselves: the claims of a memory ledger, written into one file after each. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type { LedgerEntry, LedgerOptions, StoredLedger } from "../../src/ledger.ts";
import { LedgerMemory, openMemoryLedger } from "../../src/memory-ledger.ts";

/** What this process has of each file, so that several handles are one ledger. */
const memories = new Map<string, LedgerMemory>();

/** @param isHasty plants the bug: it answers first and writes afterwards */
export async function openFileLedger(
  file: string,
  options: LedgerOptions,
  { pass = () => {}, isHasty = false }: { pass?: () => void; isHasty?: boolean } = {},
): Promise<StoredLedger> {
  const shared = memories.get(file) ?? new LedgerMemory();
  memories.set(file, shared);
  const memory = await openMemoryLedger({ ...options, memory: shared });
  if (existsSync(file))
    for (const { key, owner } of JSON.parse(readFileSync(file, "utf8")) as LedgerEntry[])
      if (owner !== undefined) await memory.restore(key, owner);
  const claim: StoredLedger["claim"] = async (...args) => {
    pass();
    const answer = await memory.claim(...args);
    const entries: LedgerEntry[] = [];
    for await (const entry of memory.entries()) entries.push(entry);
    const save = () => {
      pass();
      writeFileSync(`${file}.next`, JSON.stringify(entries));
      pass();
      renameSync(`${file}.next`, file);
      pass();
    };
    if (isHasty) setTimeout(save, 100);
    else save();
    return answer;
  };
  return new Proxy(memory, {
    get: (target, property) => {
      if (property === "claim") return claim;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
