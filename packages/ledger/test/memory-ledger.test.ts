import { describe, expect, it } from "vitest";
import { ledgerConformance } from "../src/conformance/index.ts";
import { LedgerMemory, openMemoryLedger } from "../src/memory-ledger.ts";

const places = new Map<string, LedgerMemory>();

function memoryOf(place: string): LedgerMemory {
  const memory = places.get(place) ?? new LedgerMemory();
  places.set(place, memory);
  return memory;
}

describe("a ledger in memory", () => {
  const cases = ledgerConformance(
    (place, options) => openMemoryLedger({ ...options, memory: memoryOf(place) }),
    { plant: async (place, key, bytes) => memoryOf(place).plant(key, bytes) },
  );
  for (const { name, skip, run } of cases) it.skipIf(skip !== undefined)(name, run);

  it("is empty whenever it is opened without a memory", async () => {
    await using first = await openMemoryLedger();
    await first.claim("id", "body", async () => "http://a");
    await using second = await openMemoryLedger();
    expect(await second.count()).toBe(0);
    expect(second.ledgerId).not.toBe(first.ledgerId);
    expect([second.url, second.capacity]).toEqual(["memory:executions", undefined]);
  });

  it("lets several handles share one memory, by name", async () => {
    const memory = new LedgerMemory();
    await using first = await openMemoryLedger({ memory });
    await first.claim("id", "body", async () => "http://a");
    await using second = await openMemoryLedger({ memory, requireExisting: true });
    expect((await second.lookup("id"))?.backend).toBe("http://a");
    await expect(openMemoryLedger({ memory, name: "parents", requireExisting: true })).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_MISSING",
    });
  });
});
