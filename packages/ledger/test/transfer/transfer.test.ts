import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import type { LedgerReader, StoredLedger } from "../../src/ledger.ts";
import { LedgerMemory, openMemoryLedger } from "../../src/memory-ledger.ts";
import { isClean, verifyLedger } from "../../src/qualification/verify-ledger.ts";
import { exportToFile } from "../../src/transfer/export-to-file.ts";
import { exportLedger, importLedger } from "../../src/transfer/transfer.ts";

const memory = new LedgerMemory();
let names = 0;
const make = (capacity?: number): Promise<StoredLedger> =>
  openMemoryLedger({ memory, name: `l-${++names}`, ...(capacity === undefined ? {} : { capacity }) });

/** The same ledger as `openLedgerReader` would give it. */
const readerOf = (ledger: StoredLedger): LedgerReader => ({
  url: ledger.url,
  name: ledger.name,
  ledgerId: ledger.ledgerId,
  entries: (options) => ledger.entries(options),
  entry: (key, options) => ledger.entry(key, options),
  close: () => ledger.close(),
  [Symbol.asyncDispose]: () => ledger.close(),
});

const importAny: typeof importLedger = (ledger, read, options) =>
  importLedger(ledger, read, { anyName: true, ...options });

async function filled(count: number): Promise<StoredLedger> {
  const ledger = await make();
  for (let at = 0; at < count; at++)
    await ledger.claim(`id-${at}`, `body-${at}`, async () => `http://node-${at % 3}:8787`);
  return ledger;
}

async function exported(ledger: StoredLedger): Promise<string> {
  let text = "";
  for await (const line of exportLedger(ledger)) text += line;
  return text;
}

/** The file in pieces of a size that splits lines. */
function pieces(text: string, size = 61): () => AsyncIterable<Uint8Array> {
  return async function* () {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  };
}

describe("export and import", () => {
  it("carry every binding over, once", async () => {
    const source = await filled(200);
    const target = await make();
    const text = await exported(source);
    expect(await importAny(target, pieces(text))).toEqual({
      recordCount: 200,
      addedCount: 200,
      presentCount: 0,
      conflictCount: 0,
      corruptCount: 0,
      fullCount: 0,
      conflicts: [],
      corrupt: [],
      bindingsDigest: expect.stringMatching(/^sum-sha256:[0-9a-f]{64}$/),
    });
    for (let at = 0; at < 200; at++)
      expect(await target.lookup(`id-${at}`)).toEqual(await source.lookup(`id-${at}`));
    expect(await importAny(target, pieces(text, 1_000))).toMatchObject({
      addedCount: 0,
      presentCount: 200,
    });
    const records = (file: string): string[] => file.split("\n").slice(1, -2).sort();
    expect(records(await exported(target))).toEqual(records(text));
  });

  it("a conflict is counted and named, and nothing is overwritten", async () => {
    const source = await filled(3);
    const target = await make();
    await target.claim("id-1", "another body", async () => "http://other");
    const before = await target.lookup("id-1");
    const summary = await importAny(target, pieces(await exported(source)));
    const key = (await loadDigest()).key("id-1");
    expect(summary).toMatchObject({ addedCount: 2, conflictCount: 1, conflicts: [key] });
    expect(await target.lookup("id-1")).toEqual(before);
  });

  it("the same body with another owner is a conflict; a record that cannot be read is told as one", async () => {
    const source = await filled(2);
    const target = await make();
    await target.claim("id-0", "body-0", async () => "http://other");
    memory.plant((await loadDigest()).key("id-1"), Buffer.from("{"), target.name);
    for (const dryRun of [true, false])
      expect(await importAny(target, pieces(await exported(source)), { dryRun })).toMatchObject({
        addedCount: 0,
        conflictCount: 1,
        corruptCount: 1,
        corrupt: [(await loadDigest()).key("id-1")],
      });
  });

  it("what broke off is gone on with", async () => {
    const source = await filled(100);
    const target = await make();
    const text = await exported(source);
    const stop = new AbortController();
    const reason = new Error("enough");
    const broken = importAny(target, pieces(text), {
      signal: stop.signal,
      onProgress: (done) => {
        if (done === 30) stop.abort(reason);
      },
    });
    await expect(broken).rejects.toBe(reason);
    const there = await target.count();
    expect(there).toBeGreaterThanOrEqual(30);
    expect(there).toBeLessThan(100);
    expect(await importAny(target, pieces(text))).toMatchObject({
      addedCount: 100 - there,
      presentCount: there,
    });
  });

  it("a dry run writes nothing, also where there is no ledger", async () => {
    const text = await exported(await filled(5));
    const target = await make();
    await target.claim("id-0", "body-0", async () => "http://node-0:8787");
    const summary = await importAny(target, pieces(text), { dryRun: true });
    expect(summary).toMatchObject({ addedCount: 4, presentCount: 1 });
    expect(await target.count()).toBe(1);
    expect(await importAny(undefined, pieces(text))).toMatchObject({ addedCount: 5 });
  });

  it("a full ledger takes what fits, and says how many did not", async () => {
    const target = await make(2);
    const summary = await importAny(target, pieces(await exported(await filled(5))));
    expect(summary).toMatchObject({ addedCount: 2, fullCount: 3 });
  });

  it("a dry run tells how many will find no room, also where there is no ledger yet", async () => {
    const file = pieces(await exported(await filled(5)));
    const target = await make(2);
    expect(await importAny(target, file, { dryRun: true })).toMatchObject({ addedCount: 2, fullCount: 3 });
    expect(await importAny(undefined, file, { capacity: 4 })).toMatchObject({ addedCount: 4, fullCount: 1 });
    const reader = readerOf(target);
    expect(await importAny(reader, file, { capacity: 2 })).toMatchObject({ addedCount: 2, fullCount: 3 });
    await expect(importAny(reader, file, { dryRun: false })).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_OPTION",
    });
    expect(await target.count()).toBe(0);
  });

  it("a file of a ledger with another name is refused unless that is meant", async () => {
    const source = await filled(1);
    const target = await make();
    const file = pieces(await exported(source));
    await expect(importLedger(target, file)).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_OPTION",
      message: expect.stringContaining(source.name),
    });
    expect(await target.count()).toBe(0);
  });

  it("two ledgers with the same bindings have one digest, whatever came first; any difference shows", async () => {
    const one = await make();
    const other = await make();
    const claim = (ledger: StoredLedger, id: string, owner = "http://a") =>
      ledger.claim(id, "body", async () => owner);
    for (const id of ["x", "y", "z"]) await claim(one, id);
    for (const id of ["z", "x"]) await claim(other, id);
    const digest = async (ledger: StoredLedger) => (await verifyLedger(ledger)).bindingsDigest;
    expect(await digest(other)).not.toBe(await digest(one));
    await claim(other, "y");
    expect(await digest(other)).toBe(await digest(one));
    const summary = await importAny(await make(), pieces(await exported(one)));
    expect(summary.bindingsDigest).toBe(await digest(one));
    const changed = await make();
    for (const id of ["x", "y", "z"]) await claim(changed, id, id === "y" ? "http://b" : "http://a");
    expect(await digest(changed)).not.toBe(await digest(one));
  });

  it("an export ends at a corrupt record, and leaves no file", async () => {
    const directory = await mkdtemp(join(tmpdir(), "ledger-export-"));
    try {
      const source = await filled(3);
      await exportToFile(source, join(directory, "a"));
      expect(await readFile(join(directory, "a"), "utf8")).toBe(await exported(source));
      await expect(exportToFile(source, join(directory, "a"))).rejects.toMatchObject({ code: "EEXIST" });
      memory.plant("ab".repeat(32), Buffer.from("{"), source.name);
      const refusal = { code: "CELLKIT_LEDGER_CORRUPT", key: "ab".repeat(32) };
      await expect(exportToFile(source, join(directory, "b"))).rejects.toMatchObject(refusal);
      expect(await readdir(directory)).toEqual(["a"]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe("a file that is not whole is refused before anything is written", () => {
  let whole: string;
  let target: StoredLedger;
  beforeEach(async () => {
    whole = await exported(await filled(4));
    target = await make();
  });
  afterEach(async () => {
    expect(await target.count()).toBe(0);
  });
  const lines = (text: string): string[] => text.split(/(?<=\n)/);

  it("cut at any byte", async () => {
    for (let length = 0; length < whole.length; length++)
      await expect(importAny(target, pieces(whole.slice(0, length))), `${length}`).rejects.toMatchObject({
        code: "CELLKIT_LEDGER_EXPORT",
      });
  });

  it.each([
    ["a record is missing", (text: string) => lines(text).toSpliced(2, 1).join(""), /3 records.*says 4/],
    [
      "two records changed places",
      (text: string) =>
        lines(text)
          .toSpliced(1, 2, lines(text)[2] ?? "", lines(text)[1] ?? "")
          .join(""),
      /bytes/,
    ],
    ["another owner", (text: string) => text.replace("node-1", "node-9"), /bytes/],
    ["something behind the end", (text: string) => `${text}{}\n`, /comes after/],
    [
      "a record twice",
      (text: string) =>
        lines(text)
          .toSpliced(2, 0, lines(text)[1] ?? "")
          .join(""),
      / twice/,
    ],
    ["another format", (text: string) => text.replace('"version":1', '"version":2'), /first line/],
    ["no JSON", (text: string) => text.replace('"key"', "key"), /no JSON/],
    ["a key that is none", (text: string) => text.replace('"key":"', '"key":"x'), /no record/],
    ["a line without end", (text: string) => `${text}${"x".repeat(10_000)}`, /longer/],
  ])("%s", async (_, change, message) => {
    await expect(importAny(target, pieces(change(whole), 7_000))).rejects.toThrow(message);
  });
});

describe("what a file may hold", () => {
  const key = "ab".repeat(32);
  const ended = (text: string): string =>
    `${text}${JSON.stringify({ count: 1, digest: `sha256:${createHash("sha256").update(text).digest("hex")}` })}\n`;
  const head = '{"format":"cellkit-ledger-export","version":1,"ledger":"executions","ledgerId":""}\n';
  const fileOf = (record: string) => pieces(ended(`${head}${record}\n`));
  const recordOf = (bodyHash: string) => JSON.stringify({ key, backend: "http://a", body_hash: bodyHash });

  it.each([
    ["an empty body hash", recordOf(""), /body hash is empty/],
    ["half of a surrogate pair", recordOf("\ud800"), /body hash has characters/],
    ["a NUL", recordOf("a\0b"), /body hash has characters/],
    ["a record that is too long to be read again", recordOf("z".repeat(4_060)), /more than 4096 bytes/],
    [
      "a member twice",
      `{"key":"${"cd".repeat(32)}","key":"${key}","backend":"http://a","body_hash":"x"}`,
      /same member twice/,
    ],
    ["a member within a member", `{"key":["${key}"],"backend":"http://a","body_hash":"x"}`, /no JSON object/],
  ])("%s is refused before any ledger is opened", async (_, record, message) => {
    const open = vi.fn(() => make());
    const imported = importAny(open, fileOf(record));
    await expect(imported).rejects.toThrow(message);
    await expect(imported).rejects.toMatchObject({ code: "CELLKIT_LEDGER_EXPORT" });
    expect(open).not.toHaveBeenCalled();
  });

  it("any other text that a record could hold", async () => {
    expect(await importAny(() => make(), fileOf(recordOf("blake3:é")))).toMatchObject({ addedCount: 1 });
  });

  it("what could not be imported again is not exported either", async () => {
    const source = await make();
    memory.plant(key, Buffer.from('{"version":1,"backend":"http://a","body_hash":""}'), source.name);
    await expect(exported(source)).rejects.toMatchObject({ code: "CELLKIT_LEDGER_CORRUPT", key });
  });

  it.each([
    ["cut", (text: string) => text.slice(0, -100), /it was cut off/],
    ["another whole one", () => ended(`${head}${recordOf("x")}\n`), /another one now/],
  ])("a file that is %s when it is read again: what was written is told", async (_, change, message) => {
    const text = await exported(await filled(100));
    const target = await make();
    let readCount = 0;
    const imported = importAny(target, () => pieces(++readCount === 1 ? text : change(text))());
    await expect(imported).rejects.toThrow(message);
    await expect(imported).rejects.toThrow(
      `${await target.count()} of its bindings were written before that`,
    );
  });

  it("a signal ends both of its readings", async () => {
    const text = await exported(await filled(100));
    for (const reading of [1, 2]) {
      const stop = new AbortController();
      const reason = new Error("enough");
      let readCount = 0;
      const read = async function* () {
        readCount += 1;
        yield* pieces(text.slice(0, 200))();
        if (readCount === reading) stop.abort(reason);
        // It goes on for as long as it is read.
        for (let at = 0; readCount === reading && at < 1_000; at++) yield Buffer.from("");
        yield* pieces(text.slice(200))();
      };
      await expect(importAny(await make(), read, { signal: stop.signal })).rejects.toBe(reason);
    }
  });
});

describe("verify", () => {
  it("a clean ledger is clean", async () => {
    const findings = await verifyLedger(await filled(3));
    expect(findings).toMatchObject({ recordCount: 3, corruptCount: 0, foreignCount: 0 });
    expect(isClean(findings)).toBe(true);
  });

  it("names a corrupt record", async () => {
    const ledger = await filled(1);
    memory.plant("ab".repeat(32), Buffer.from("{"), ledger.name);
    const findings = await verifyLedger(ledger);
    expect(findings.corrupt).toEqual([{ name: "ab".repeat(32), problem: expect.any(String) }]);
    expect(isClean(findings)).toBe(false);
  });
});
