// What becomes of an open ledger whose directory is emptied, replaced, or led elsewhere.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { LedgerReader, StoredLedger } from "../../src/ledger.ts";
import { openPosixReader } from "../../src/posix/posix-reader.ts";
import { verifyLedger } from "../../src/qualification/verify-ledger.ts";
import { chooses, openForTest, temporaryDirectory } from "../support/posix-place.ts";

const gone = { code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "no" };

function empty(directory: string): void {
  for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
}

const firstEntry = (ledger: LedgerReader) => ledger.entries()[Symbol.asyncIterator]().next();

async function expectNothingFree(ledger: StoredLedger): Promise<void> {
  await expect(ledger.claim("id", "other body", chooses())).rejects.toMatchObject(gone);
  await expect(ledger.lookup("id")).rejects.toMatchObject(gone);
  await expect(ledger.restore("d".repeat(64), { backend: "http://a", bodyHash: "x" })).rejects.toMatchObject(
    gone,
  );
  await expect(ledger.count()).rejects.toMatchObject(gone);
  await expect(ledger.sweep({ quarantineMs: 0 })).rejects.toMatchObject(gone);
  await expect(firstEntry(ledger)).rejects.toMatchObject(gone);
}

it.each<[string, (directory: string) => unknown]>([
  ["emptied", empty],
  [
    "emptied, and a new ledger made in it",
    async (directory) => {
      empty(directory);
      await openForTest({ directory });
    },
  ],
  [
    "replaced by an empty one",
    (directory) => {
      renameSync(directory, `${directory}.away`);
      mkdirSync(directory);
    },
  ],
])("in a directory that was %s no id is free", async (_, change) => {
  const directory = join(await temporaryDirectory(), "ledger");
  const ledger = await openForTest({ directory, retirable: true });
  const reader = await openPosixReader({ directory });
  onTestFinished(() => reader.close());
  await ledger.claim("id", "body", chooses());
  const between = ledger.claim("other", "body", async () => {
    await change(directory);
    return "http://a:1";
  });
  await expect(between).rejects.toMatchObject(gone);
  await expectNothingFree(ledger);
  await expect(firstEntry(reader)).rejects.toMatchObject(gone);
  expect(readdirSync(directory).filter((name) => name.endsWith(".json"))).toEqual([]);
});

it("a directory whose files come back from a backup is the ledger again", async () => {
  const top = await temporaryDirectory();
  const directory = join(top, "ledger");
  const ledger = await openForTest({ directory });
  await ledger.claim("id", "body", chooses());
  cpSync(directory, join(top, "backup"), { recursive: true });
  empty(directory);
  await expect(ledger.lookup("id")).rejects.toMatchObject(gone);
  cpSync(join(top, "backup"), directory, { recursive: true });
  expect((await ledger.claim("id", "body", chooses())).kind).toBe("existing");
  expect((await ledger.claim("new", "body", chooses())).kind).toBe("new");
  expect(await ledger.count()).toBe(2);
});

it("a staging folder that is a link is refused, and what lies behind it stays", async () => {
  const top = await temporaryDirectory();
  const directory = join(top, "ledger");
  await (await openForTest({ directory })).close();
  mkdirSync(join(top, "others"));
  writeFileSync(join(top, "others", "precious"), "");
  utimesSync(join(top, "others", "precious"), 0, 0);
  rmSync(join(directory, ".claim-staging"), { recursive: true });
  symlinkSync(join(top, "others"), join(directory, ".claim-staging"));
  await expect(openForTest({ directory })).rejects.toMatchObject({ code: "CELLKIT_LEDGER_UNSUPPORTED" });
  expect(existsSync(join(top, "others", "precious"))).toBe(true);
  const reader = await openPosixReader({ directory });
  onTestFinished(() => reader.close());
  const findings = await verifyLedger(reader, { directory });
  expect(findings.staleStagingCount).toBe(0);
  expect(findings).toMatchObject({ foreign: [{ name: ".claim-staging" }] });
});
