import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLedger, openLedgerReader } from "../../src/open-ledger.ts";
import { isClean, verifyLedger } from "../../src/qualification/verify-ledger.ts";
import { exportLedger } from "../../src/transfer/transfer.ts";

let top: string;
let live: string;
let original: string;
beforeEach(async () => {
  top = await mkdtemp(join(tmpdir(), "ledger-reader-"));
  live = join(top, "live");
  original = join(top, "original");
  const ledger = await openLedger(live);
  for (const id of ["a", "b"]) await ledger.claim(id, "body", async () => "http://owner");
  await ledger.close();
  await mkdir(original);
  // As a router of the original leaves it: records and the lock file, and nothing of ours.
  for (const name of await readdir(live))
    if (name.endsWith(".json") || name === "ownership.lock") await cp(join(live, name), join(original, name));
});
afterEach(() => rm(top, { recursive: true, force: true }));

describe("a directory that only the original has used", () => {
  it("is read, exported and verified, and nothing is left there", async () => {
    const before = await readdir(original);
    await using reader = await openLedgerReader(original);
    expect(reader).toMatchObject({ name: "executions", ledgerId: undefined });
    const findings = await verifyLedger(reader, { directory: original });
    expect(findings).toMatchObject({ recordCount: 2, otherLedgers: [] });
    expect(isClean(findings)).toBe(true);
    const lines: string[] = [];
    for await (const line of exportLedger(reader)) lines.push(line);
    expect(lines).toHaveLength(4);
    expect(await readdir(original)).toEqual(before);
  });

  it("and one that may not be written to, too", async () => {
    await chmod(original, 0o555);
    await using reader = await openLedgerReader(original);
    const [first] = await readdir(original);
    expect(await reader.entry(first?.slice(0, 64) ?? "")).toMatchObject({
      owner: { backend: "http://owner" },
    });
    await chmod(original, 0o755);
  });

  it("binds what its adopted copy binds", async () => {
    const digest = async (place: string) => {
      await using reader = await openLedgerReader(place);
      return (await verifyLedger(reader)).bindingsDigest;
    };
    expect(await digest(original)).toBe(await digest(live));
  });
});

it.each([
  ["nothing", /there is no such directory/],
  ["empty", /neither a file cellkit.ledger nor a record/],
  ["file", /it is no directory/],
])("%s is no ledger, and stays as it is", async (name, message) => {
  await mkdir(join(top, "empty"));
  await writeFile(join(top, "file"), "");
  const before = await readdir(top, { recursive: true });
  const place = join(top, name);
  await expect(openLedgerReader(place)).rejects.toMatchObject({ code: "CELLKIT_LEDGER_MISSING" });
  await expect(openLedgerReader(place)).rejects.toThrow(message);
  expect(await readdir(top, { recursive: true })).toEqual(before);
});

it("tells of other ledgers beside it, and of what a killed qualification left", async () => {
  const parents = await openLedger(live, { name: "parents" });
  await parents.close();
  await mkdir(join(live, "cellkit-qualify-0123456789ab"));
  await using reader = await openLedgerReader(live);
  const findings = await verifyLedger(reader, { directory: live });
  expect(findings.otherLedgers).toEqual(["parents"]);
  expect(findings.staleStaging).toMatchObject([{ name: "cellkit-qualify-0123456789ab" }]);
  expect(isClean(findings)).toBe(true);
});

it("after its close it answers nothing", async () => {
  const reader = await openLedgerReader(live);
  await reader.close();
  await reader.close();
  await expect(reader.entry("ab".repeat(32))).rejects.toMatchObject({ code: "CELLKIT_LEDGER_CLOSED" });
});
