import { expect, it } from "vitest";
import { checkClaimHistory, type HistoryOperation, recordHistory } from "../../src/conformance/index.ts";
import { loadDigest } from "../../src/digest.ts";
import { LedgerUnavailableError } from "../../src/errors.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { openMemoryLedger } from "../../src/memory-ledger.ts";

const digest = await loadDigest();
const key = digest.key("id");
const bodyHash = digest.bodyHash("b");
const owner = { backend: "http://a", bodyHash };

async function recorded(options?: { client?: string }) {
  let timeUs = 0;
  const memory = await openMemoryLedger({ retirable: true, capacity: 2 });
  return recordHistory(memory, { ...options, clockUs: () => timeUs++ });
}

it("every call is written down with its time and what it was told", async () => {
  const { ledger, operations } = await recorded({ client: "c" });
  await ledger.lookup("id");
  await ledger.claim("id", "b", async () => "http://a");
  await ledger.claim("id", "b", async () => "http://unused");
  await ledger.claim("id", "c", async () => "http://unused");
  await ledger.lookup("id");
  await ledger.restore(key, owner);
  await ledger.restore(key, { ...owner, backend: "http://b" });
  await ledger.restore(digest.key("2"), owner);
  await ledger.claim("3", "b", async () => "http://unused");
  await ledger.retire("id", { quarantineMs: 3_600_000 });
  await ledger.retire("id", { quarantineMs: 0 });
  await ledger.sweep({ quarantineMs: 0 });
  expect(operations.map(({ client, calledUs, returnedUs }) => [client, calledUs, returnedUs])).toEqual(
    Array.from({ length: 12 }, (_, index) => ["c", 2 * index, 2 * index + 1]),
  );
  expect(operations.map(({ client, calledUs, returnedUs, ...rest }) => rest)).toEqual([
    { kind: "lookup", key, answer: { kind: "absent" } },
    { kind: "claim", key, bodyHash, backend: "http://a", answer: { kind: "new", ...owner } },
    { kind: "claim", key, bodyHash, answer: { kind: "existing", ...owner } },
    { kind: "claim", key, bodyHash: digest.bodyHash("c"), answer: { kind: "conflict" } },
    { kind: "lookup", key, answer: { kind: "found", ...owner } },
    { kind: "restore", key, ...owner, answer: { kind: "present", ...owner } },
    { kind: "restore", key, ...owner, backend: "http://b", answer: { kind: "conflict" } },
    { kind: "restore", key: digest.key("2"), ...owner, answer: { kind: "added", ...owner } },
    { kind: "claim", key: digest.key("3"), bodyHash, answer: { kind: "full" } },
    { kind: "retire", key, answer: { kind: "kept" } },
    { kind: "retire", key, answer: { kind: "retired" } },
    { kind: "sweep", answer: { kind: "swept" } },
  ]);
  expect(JSON.parse(JSON.stringify(operations))).toEqual(operations);
});

it("the wrapped ledger is the ledger, for everything else", async () => {
  const memory = await openMemoryLedger({ capacity: 7 });
  const { ledger, operations } = recordHistory(memory);
  await memory.claim("id", "b", async () => "http://a");
  expect([ledger.url, ledger.name, ledger.ledgerId, ledger.capacity]).toEqual([
    memory.url,
    memory.name,
    memory.ledgerId,
    7,
  ]);
  expect(await ledger.count()).toBe(1);
  expect((await ledger.entry(key))?.owner).toEqual(owner);
  for await (const entry of ledger.entries()) expect(entry.key).toBe(key);
  expect(operations).toEqual([]);
  await ledger[Symbol.asyncDispose]();
  await expect(memory.count()).rejects.toMatchObject({ code: "CELLKIT_LEDGER_CLOSED" });
});

it("a failure is told apart by what it left: surely nothing, or perhaps something", async () => {
  const { ledger, operations } = await recorded();
  const refuse = () => Promise.reject(new TypeError("none"));
  const never = () => new Promise<string>(() => {});
  await expect(ledger.claim("id", "b", refuse)).rejects.toThrow();
  await expect(ledger.claim("id", "b", never, { signal: AbortSignal.timeout(1) })).rejects.toThrow();
  await expect(ledger.retire("id", { quarantineMs: -1 })).rejects.toThrow();
  await expect(ledger.sweep({ quarantineMs: -1 })).rejects.toThrow();
  const pending = ledger.claim("id", "b", never, { signal: AbortSignal.timeout(1_000_000) });
  await new Promise((done) => setImmediate(done));
  expect(operations.map(({ answer, returnedUs }) => [answer?.kind, returnedUs !== null])).toEqual([
    ["unchanged", true],
    ["maybe", true],
    ["unchanged", true],
    ["maybe", true],
    [undefined, false],
  ]);
  expect(pending).toBeInstanceOf(Promise);
});

it.each([
  ["claim", "no", "unchanged"],
  ["claim", "maybe", "maybe"],
  ["retire", "no", "maybe"],
  ["restore", "no", "maybe"],
] as const)("a %s that a store failed with recorded: %s counts as %s", async (kind, recordedAs, expected) => {
  const fail = () => Promise.reject(new LedgerUnavailableError("l", "cut", recordedAs));
  const broken = { claim: fail, retire: fail, restore: fail } as unknown as StoredLedger;
  const { ledger, operations } = recordHistory(broken);
  const calls = {
    claim: () => ledger.claim("id", "b", async () => "http://a"),
    retire: () => ledger.retire("id", { quarantineMs: 0 }),
    restore: () => ledger.restore(key, owner),
  };
  await expect(calls[kind]()).rejects.toThrow();
  expect(operations[0]?.answer?.kind).toBe(expected);
});

/** A claim of `b` by one owner, from and until; with what it was told. */
const claim = (
  from: number,
  until: number | null,
  answer: HistoryOperation["answer"],
  asked: { backend?: string; bodyHash?: string } = owner,
): HistoryOperation => ({
  client: "0",
  kind: "claim",
  key,
  ...asked,
  calledUs: from,
  returnedUs: until,
  answer,
});
const lookup = (from: number, until: number, answer: HistoryOperation["answer"]): HistoryOperation => ({
  client: "0",
  kind: "lookup",
  key,
  calledUs: from,
  returnedUs: until,
  answer,
});
const made = { kind: "new", ...owner } as const;
const existing = { kind: "existing", ...owner } as const;
const found = { kind: "found", ...owner } as const;
const absent = { kind: "absent" } as const;
const maybe = { kind: "maybe" } as const;
const other = { ...owner, bodyHash: "blake3:other" };

it.each<[string, HistoryOperation[]]>([
  ["nothing at all", []],
  ["a claim and its repetition", [claim(0, 1, made), claim(2, 3, existing)]],
  ["a look that saw the record before its claim was answered", [claim(0, 9, made), lookup(2, 3, found)]],
  ["a look that missed it while it was made", [claim(0, 9, made), lookup(2, 3, absent), lookup(4, 5, found)]],
  ["a look that began before it was made", [claim(0, 3, made), lookup(1, 9, absent)]],
  ["calls that touch at one moment", [claim(0, 2, made), lookup(2, 3, absent)]],
  ["a lost claim that was done", [claim(0, null, null), lookup(5, 6, found)]],
  ["a lost claim that was done late", [claim(0, 1, maybe), lookup(2, 3, absent), lookup(4, 5, found)]],
  ["a lost claim that was never done", [claim(0, 1, maybe), lookup(2, 3, absent)]],
  ["one of two lost claims", [claim(0, 1, maybe, other), claim(0, 1, maybe), claim(2, 3, existing)]],
  ["a conflict with a lost claim", [claim(0, null, null, other), claim(2, 3, { kind: "conflict" })]],
  ["a failure without effect", [claim(0, 1, { kind: "unchanged" }), lookup(2, 3, absent)]],
])("possible: %s", (_, operations) => {
  expect(checkClaimHistory(operations)).toEqual([]);
});

it.each<[string, HistoryOperation[], RegExp]>([
  ["two new answers", [claim(0, 1, made), claim(2, 3, made)], /2 calls were told that they made/],
  [
    "another owner",
    [claim(0, 1, made), claim(2, 3, { ...existing, backend: "http://b" })],
    /named http:\/\/b/,
  ],
  ["another body", [claim(0, 1, made), lookup(2, 3, { ...found, bodyHash: "x" })], /named .* and x/],
  ["a conflict let through", [claim(0, 1, made), claim(2, 3, existing, other)], /existing for other bytes/],
  ["a conflict for the same bytes", [claim(0, 1, made), claim(2, 3, { kind: "conflict" })], /same binding/],
  ["a record gone", [claim(0, 1, made), lookup(2, 3, absent)], /1\.0 µs before .* or was gone/],
  ["a record gone for a full answer", [claim(0, 1, made), claim(2, 3, { kind: "full" })], /was gone/],
  [
    "a record seen before its claim",
    [lookup(0, 1, found), claim(2, 3, made)],
    /before it can have been made/,
  ],
  ["a record of nobody", [lookup(0, 1, found)], /nobody can have made it/],
  ["a record of a failed claim", [claim(0, 1, { kind: "unchanged" }), lookup(2, 3, found)], /nobody can/],
  [
    "a record of a claim without owner",
    [claim(0, 1, maybe, { bodyHash }), lookup(2, 3, found)],
    /nobody can/,
  ],
  ["a record seen before a lost claim", [lookup(0, 1, found), claim(2, null, null)], /before it can/],
  ["an answer with other bytes than asked", [claim(0, 1, made, other)], /named/],
])("impossible: %s", (_, operations, problem) => {
  expect(checkClaimHistory(operations)).toEqual([{ key, problem: expect.stringMatching(problem) }]);
});

it("each id is judged by itself", () => {
  const elsewhere = { ...lookup(2, 3, absent), key: digest.key("2") };
  expect(checkClaimHistory([claim(0, 1, made), elsewhere])).toEqual([]);
  expect(checkClaimHistory([claim(0, 1, made), elsewhere, { ...elsewhere, answer: found }])).toEqual([
    { key: elsewhere.key, problem: expect.stringMatching(/nobody/) },
  ]);
});

it("a history with retirements is refused, not judged wrongly", () => {
  const base = { client: "0", calledUs: 0, returnedUs: 1 };
  for (const operation of [
    { ...base, kind: "retire", key, answer: { kind: "kept" } },
    { ...base, kind: "sweep", answer: { kind: "swept" } },
  ] as const)
    expect(() => checkClaimHistory([operation])).toThrow(
      expect.objectContaining({ code: "CELLKIT_LEDGER_OPTION" }),
    );
});
