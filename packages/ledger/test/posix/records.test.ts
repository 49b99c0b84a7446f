import { execFileSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import { CorruptRecordError, LedgerUnavailableError } from "../../src/errors.ts";
import type { PosixLedgerEvent } from "../../src/posix/ledger-event.ts";
import { chooses, listAll, openForTest, temporaryDirectory } from "../support/posix-place.ts";

const { key, bodyHash } = await loadDigest();
const HASH = bodyHash("body");
const GOOD = `{"version":1,"backend":"http://10.20.0.11:8787","body_hash":"${HASH}"}`;

it("writes the original's bytes under the original's name, with mode 0600, and leaves nothing else", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory });
  await ledger.claim("an id", "body", chooses());
  const path = join(directory, `${key("an id")}.json`);
  expect(readFileSync(path, "utf8")).toBe(GOOD);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await ledger.close();
  expect(statSync(path).nlink).toBe(1);
  expect(readdirSync(join(directory, ".claim-staging"))).toEqual([]);
  expect(readdirSync(directory).sort()).toEqual(
    [".claim-staging", `${key("an id")}.json`, "cellkit.count", "cellkit.ledger", "ownership.lock"].sort(),
  );
  expect(statSync(join(directory, "ownership.lock")).size).toBe(0);
});

it("keeps a ledger of another name in a subdirectory", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory, name: "scoped-ops" });
  await ledger.claim("an id", "body", chooses());
  expect(readFileSync(join(directory, "scoped-ops", `${key("an id")}.json`), "utf8")).toBe(GOOD);
  expect(readdirSync(directory)).toEqual(["scoped-ops"]);
});

const corrupt: Record<string, (path: string) => void> = {
  empty: (path) => writeFileSync(path, ""),
  truncated: (path) => writeFileSync(path, GOOD.slice(0, -10)),
  "larger than 4,096 bytes": (path) => writeFileSync(path, GOOD + " ".repeat(4_097 - GOOD.length)),
  "of another version": (path) => writeFileSync(path, GOOD.replace(":1,", ":2,")),
  "with a member more": (path) => writeFileSync(path, GOOD.replace("{", '{"more":1,')),
  "with an https owner": (path) => writeFileSync(path, GOOD.replace("http:", "https:")),
  "a symbolic link to a good record": (path) => {
    writeFileSync(`${path}.good`, GOOD);
    symlinkSync(`${path}.good`, path);
  },
  "a symbolic link to nowhere": (path) => symlinkSync("nowhere", path),
  "a directory": (path) => mkdirSync(path),
  "a FIFO": (path) => execFileSync("mkfifo", [path]),
};

it.each(Object.entries(corrupt))(
  "a record that is %s is an error for its id alone, and stays as it is",
  async (_, plant) => {
    const directory = await temporaryDirectory();
    const events: PosixLedgerEvent[] = [];
    const ledger = await openForTest({ directory, retirable: true, onEvent: (event) => events.push(event) });
    const path = join(directory, `${key("bad")}.json`);
    plant(path);
    writeFileSync(join(directory, `${key("bad")}.retired`), "");
    const before = lstatSync(path);
    let chosen = 0;
    const choose = async () => {
      chosen += 1;
      return "http://other";
    };
    await expect(ledger.claim("bad", "body", choose)).rejects.toThrow(CorruptRecordError);
    await expect(ledger.lookup("bad")).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_CORRUPT",
      key: key("bad"),
    });
    await expect(ledger.retire("bad", { quarantineMs: 0 })).rejects.toThrow(CorruptRecordError);
    const owner = { backend: "http://other", bodyHash: HASH };
    await expect(ledger.restore(key("bad"), owner)).rejects.toThrow(CorruptRecordError);
    expect(await ledger.sweep({ quarantineMs: 0 })).toBe(0);
    expect(await ledger.entry(key("bad"))).toMatchObject({
      owner: undefined,
      problem: expect.any(String),
      marked: true,
    });
    expect(chosen).toBe(0);
    expect(lstatSync(path)).toMatchObject({ ino: before.ino, size: before.size, mtimeMs: before.mtimeMs });
    expect(events).toContainEqual({ kind: "corrupt", key: key("bad"), problem: expect.any(String) });
    expect(events).toContainEqual(
      expect.objectContaining({ kind: "claim", result: "failed", code: "CELLKIT_LEDGER_CORRUPT" }),
    );
    expect((await ledger.claim("good", "body", chooses())).kind).toBe("new");
  },
);

it("a record that appears between the look and the lock decides, also when it is corrupt", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory });
  const plant = (id: string, text: string) => async () => {
    writeFileSync(join(directory, `${key(id)}.json`), text);
    return "http://dropped";
  };
  expect(await ledger.claim("good", "body", plant("good", GOOD))).toEqual({
    kind: "existing",
    owner: { backend: "http://10.20.0.11:8787", bodyHash: HASH },
  });
  expect(await ledger.claim("other", "other body", plant("other", GOOD))).toEqual({ kind: "conflict" });
  await expect(ledger.claim("bad", "body", plant("bad", "{"))).rejects.toThrow(CorruptRecordError);
  expect(readFileSync(join(directory, `${key("bad")}.json`), "utf8")).toBe("{");
});

it("an id that takes the last place between the look and the lock is existing, not full", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory, capacity: 1 });
  const plant = async () => {
    writeFileSync(join(directory, `${key("last")}.json`), GOOD);
    return "http://dropped";
  };
  expect((await ledger.claim("last", "body", plant)).kind).toBe("existing");
  expect(await ledger.claim("one more", "body", chooses())).toEqual({ kind: "full" });
});

it("a directory that was moved away makes every call fail, and nothing counts as absent", async () => {
  const directory = join(await temporaryDirectory(), "ledger");
  const ledger = await openForTest({ directory });
  await ledger.claim("there", "body", chooses());
  await rename(directory, `${directory}.moved`);
  await expect(ledger.lookup("there")).rejects.toThrow(LedgerUnavailableError);
  mkdirSync(directory);
  await expect(ledger.lookup("there")).rejects.toThrow(/moved or replaced/);
  await expect(ledger.claim("new", "body", chooses())).rejects.toMatchObject({ recorded: "no" });
  expect(readdirSync(directory)).toEqual([]);
  await rm(directory, { recursive: true });
  writeFileSync(directory, "");
  await expect(ledger.lookup("there")).rejects.toThrow(LedgerUnavailableError);
  await rm(directory);
  await rename(`${directory}.moved`, directory);
  expect(await ledger.lookup("there")).toMatchObject({ bodyHash: HASH });
});

it("lists records, marks and what is foreign, but not what belongs to the ledger", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory, retirable: true });
  await openForTest({ directory, name: "parents" });
  await ledger.claim("a", "body", chooses());
  await ledger.claim("b", "body", chooses());
  await ledger.retire("b", { quarantineMs: 60_000 });
  writeFileSync(join(directory, `${key("orphan")}.retired`), "");
  writeFileSync(join(directory, ".tmpAbC"), "");
  writeFileSync(join(directory, "notes.json"), "{}");
  const entries = await listAll(ledger);
  const of = (wanted: string) => entries.find((entry) => entry.key === wanted);
  expect(entries).toHaveLength(5);
  expect(of(key("a"))).toMatchObject({ owner: { bodyHash: HASH }, marked: false });
  expect(of(key("b"))).toMatchObject({ owner: { bodyHash: HASH }, marked: true });
  expect(of(key("orphan"))).toMatchObject({ owner: undefined, marked: true });
  expect(of(".tmpAbC")?.problem).toContain("staging file");
  expect(of("notes.json")?.problem).toContain("nothing of a ledger's");
  expect(await ledger.entry(key("orphan"))).toBeUndefined();
  // The original counts whatever ends in .json.
  expect(await ledger.count()).toBe(3);
  expect(await readFile(join(directory, "notes.json"), "utf8")).toBe("{}");
});
