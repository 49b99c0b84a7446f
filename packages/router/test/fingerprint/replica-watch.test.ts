import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openPosixLedger, verifyLedger } from "@cellkit/ledger";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../../tools/test-support/until.ts";
import type { Credentials } from "../../src/core/credentials.ts";
import { CredentialError } from "../../src/errors.ts";
import { bucketNotes } from "../../src/fingerprint/bucket-notes.ts";
import { formatFingerprint, type Mismatch, parseFingerprint } from "../../src/fingerprint/fingerprint.ts";
import { openNotes } from "../../src/fingerprint/open-notes.ts";
import type { ReplicaNotes } from "../../src/fingerprint/replica-notes.ts";
import { ReplicaWatch } from "../../src/fingerprint/replica-watch.ts";
import { credentials, own, tokens } from "../support/fingerprint.ts";

describe("replicas on one ledger", () => {
  let directory: string;
  let open: () => Promise<ReplicaNotes>;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "router-fingerprint-"));
    open = () => openNotes(directory, {});
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  async function watch(
    replica: string,
    difference: Partial<Credentials> & { list?: string[]; ledgerId?: string } = {},
  ) {
    const heard: (Mismatch & { state: string })[] = [];
    const failures: unknown[] = [];
    const notes = await open();
    const { list: other, ledgerId = "ledger-1", ...tokens } = difference;
    const replicas = new ReplicaWatch({
      replica,
      ledgerId,
      notes,
      credentials: { load: () => ({ ...credentials, ...tokens }) },
      list: other ?? ["http://a", "http://b"],
      onMismatch: (mismatch, state) => heard.push({ ...mismatch, state }),
      onFailure: (error) => failures.push(error),
      // It looks when the test says, and has the time to take its note away.
      tokenIntervalMs: 3_600_000,
      closeMs: 60_000,
    });
    return { replicas, heard, failures, notes };
  }
  describe.each([
    ["a directory", () => openNotes(directory, {})],
    ["a bucket", async () => bucketNotes(pathToFileURL(directory).href, {})],
  ])("in %s", (_, openHere) => {
    beforeEach(() => {
      open = openHere;
    });

    it("hear that a ledger took the place of another one's under a replica, and not that all tokens are others", async () => {
      const a = await watch("a");
      const b = await watch("b", { ledgerId: "ledger-2" });
      await a.replicas.look();
      await b.replicas.look();
      await a.replicas.look();
      expect([...a.heard, ...b.heard]).toEqual([
        { replica: "b", part: "ledger", state: "begun" },
        { replica: "a", part: "ledger", state: "begun" },
      ]);
      await Promise.all([a.replicas.close(), b.replicas.close()]);
    });

    it("hear of another list and another token, and when it is over", async () => {
      const a = await watch("a");
      const b = await watch("b", {
        list: ["http://b", "http://a"],
        backend: Buffer.from("other-token-of-24-letters"),
      });
      await a.replicas.look();
      await b.replicas.look();
      expect(b.heard).toEqual([
        { replica: "a", part: "backends", state: "begun" },
        { replica: "a", part: "backend", state: "begun" },
      ]);
      expect([a.heard, b.replicas.replicaCount]).toEqual([[], 2]);
      await a.replicas.look();
      expect(a.heard).toMatchObject([
        { replica: "b", state: "begun" },
        { replica: "b", state: "begun" },
      ]);
      await b.replicas.close();
      await a.replicas.look();
      expect([a.replicas.mismatches, a.replicas.replicaCount, a.heard.length]).toEqual([[], 1, 4]);
      await a.replicas.close();
    });
  });

  it("no token, nor a plain hash of one, is in what they leave", async () => {
    const { replicas } = await watch("a");
    await replicas.look();
    const folder = join(directory, "cellkit-router");
    const text = await readFile(join(folder, "cellkit-router-a.fingerprint"), "utf8");
    expect(parseFingerprint(text)?.tokens?.client).toHaveLength(4);
    for (const token of tokens) expect(text).not.toContain(token);
    await replicas.close();
    expect(await readdir(folder)).toEqual([]);
  });

  it("a replica that is gone is not compared, and a stranger's file is none", async () => {
    const { replicas, notes, heard } = await watch("a");
    // Whose it is, its place says.
    await notes.write("b", formatFingerprint({ ...own, replica: "z" }));
    await replicas.look();
    expect(new Set(heard.map(({ replica }) => replica))).toEqual(new Set(["b"]));
    const folder = join(directory, "cellkit-router");
    await writeFile(join(folder, "cellkit-router-c.fingerprint"), "hello");
    await writeFile(join(folder, "notes.json"), "{}");
    const old = new Date(Date.now() - 150_000);
    await utimes(join(folder, "cellkit-router-b.fingerprint"), old, old);
    await replicas.look();
    expect([replicas.mismatches, replicas.replicaCount]).toEqual([[], 1]);
    const left = async () => (await notes.list()).map(({ replica }) => replica).sort();
    expect(await left()).toEqual(["a", "b", "c"]);
    // An hour later it is litter.
    const older = new Date(Date.now() - 3_700_000);
    await utimes(join(folder, "cellkit-router-b.fingerprint"), older, older);
    await replicas.look();
    expect(await left()).toEqual(["a", "c"]);
    await replicas.close();
  });

  it("among a thousand strangers' files its note is found, and without its own note nobody is judged", async () => {
    const { replicas, notes, heard } = await watch("zz");
    await replicas.look();
    const folder = join(directory, "cellkit-router");
    for (let at = 0; at < 1_000; at++) await writeFile(join(folder, `a-${at}`), "");
    expect((await notes.list()).map(({ replica }) => replica)).toEqual(["zz"]);
    await notes.write("b", formatFingerprint({ ...own, replica: "b" }));
    const { list } = notes;
    notes.list = async () => (await list()).filter(({ replica }) => replica !== "zz");
    await replicas.look();
    expect(heard).toEqual([]);
    notes.list = list;
    await replicas.look();
    expect(new Set(heard.map(({ state }) => state))).toEqual(new Set(["begun"]));
    notes.list = async () => (await list()).filter(({ replica }) => replica !== "zz");
    await replicas.look();
    // Nor is anything told as over.
    expect(new Set(heard.map(({ state }) => state))).toEqual(new Set(["begun"]));
    expect(replicas.replicaCount).toBe(2);
    await replicas.close();
  });

  it("what is no file among the notes is none: neither a pipe that nobody writes to nor a link", async () => {
    const { replicas, notes } = await watch("a");
    await replicas.look();
    const folder = join(directory, "cellkit-router");
    execFileSync("mkfifo", [join(folder, "cellkit-router-pipe.fingerprint")]);
    await mkdir(join(folder, "cellkit-router-folder.fingerprint"));
    await writeFile(join(directory, "elsewhere"), formatFingerprint({ ...own, replica: "link" }));
    await symlink(join(directory, "elsewhere"), join(folder, "cellkit-router-link.fingerprint"));
    expect((await notes.list()).map(({ replica }) => replica)).toEqual(["a"]);
    await replicas.look();
    expect(replicas.isFailing).toBe(false);
    await replicas.close();
  });

  it("a link where a note is written, or staged, leads nowhere", async () => {
    const { replicas, notes } = await watch("a");
    const folder = join(directory, "cellkit-router");
    const elsewhere = join(directory, "elsewhere");
    await mkdir(folder);
    await writeFile(elsewhere, "precious");
    for (const ending of ["", ".next"])
      await symlink(elsewhere, join(folder, `cellkit-router-a.fingerprint${ending}`));
    await replicas.look();
    expect(await readFile(elsewhere, "utf8")).toBe("precious");
    expect((await notes.list()).map(({ replica }) => replica)).toEqual(["a"]);
    await replicas.close();
  });

  it("a note that cannot be put in its place leaves nothing behind", async () => {
    const notes = await open();
    const folder = join(directory, "cellkit-router");
    await mkdir(join(folder, "cellkit-router-a.fingerprint"), { recursive: true });
    await expect(notes.write("a", "{}")).rejects.toMatchObject({ code: expect.stringMatching(/^E/) });
    expect(await readdir(folder)).toEqual(["cellkit-router-a.fingerprint"]);
  });

  it("what a replica that died left half written is taken away after an hour, and not before", async () => {
    const { replicas } = await watch("a");
    await replicas.look();
    const folder = join(directory, "cellkit-router");
    const uuid = "00000000-0000-4000-8000-000000000000";
    for (const [name, ageMs] of [
      ["old.fingerprint.next", 3_700_000],
      [`old.fingerprint.${uuid}.next`, 3_700_000],
      [`new.fingerprint.${uuid}.next`, 0],
    ] as const) {
      const path = join(folder, `cellkit-router-${name}`);
      await writeFile(path, "{");
      const when = new Date(Date.now() - ageMs);
      await utimes(path, when, when);
    }
    await replicas.look();
    expect((await readdir(folder)).sort()).toEqual([
      "cellkit-router-a.fingerprint",
      `cellkit-router-new.fingerprint.${uuid}.next`,
    ]);
    await replicas.close();
  });

  it("a ledger's check finds nothing foreign", async () => {
    await using ledger = await openPosixLedger({ directory });
    const { replicas } = await watch("a.json");
    await replicas.look();
    await ledger.claim("id", "body", async () => "http://a");
    expect(await verifyLedger(ledger)).toMatchObject({ recordCount: 1, foreignCount: 0, corruptCount: 0 });
    await replicas.close();
  });

  it("tokens that cannot be used keep the list from nobody", async () => {
    const notes = await openNotes(directory, {});
    const replicas = new ReplicaWatch({
      replica: "a",
      ledgerId: "l",
      notes,
      credentials: {
        load: () => {
          throw new CredentialError("client", "the file is gone");
        },
      },
      list: [],
      onMismatch: () => undefined,
      onFailure: () => undefined,
    });
    await replicas.look();
    expect(parseFingerprint((await notes.list())[0]?.text ?? "")).toMatchObject({
      replica: "a",
      backends: expect.stringMatching(/^sha256:/),
    });
    await replicas.close();
  });

  it("a store that fails is told once, and works again", async () => {
    const missing = join(directory, "missing");
    open = () => openNotes(missing, {});
    const { replicas, failures } = await watch("a");
    await replicas.look();
    await replicas.look();
    expect([failures.length, replicas.isFailing]).toEqual([1, true]);
    await mkdir(missing);
    await until("a look that works", async () => {
      await replicas.look();
      return !replicas.isFailing;
    });
    await replicas.close();
  });
});

it.each([
  ["every so often", { intervalMs: 20, tokenIntervalMs: 3_600_000 }],
  ["when a token has changed", { intervalMs: 3_600_000, tokenIntervalMs: 20 }],
])("a replica writes and looks by itself %s", async (_when, intervals) => {
  const written: (string | undefined)[] = [];
  let now = credentials;
  const watch = new ReplicaWatch({
    replica: "a",
    ledgerId: "id",
    notes: {
      write: async (_replica, text) => void written.push(parseFingerprint(text)?.tokens?.client),
      list: async () => [],
      remove: async () => undefined,
      close: async () => undefined,
    },
    credentials: { load: () => now },
    list: [],
    onMismatch: () => undefined,
    onFailure: () => undefined,
    ...intervals,
  });
  await watch.look();
  now = { ...credentials, client: [Buffer.from("client-token-of-this-test-2")] };
  await until("another look", () => new Set(written).size === 2);
  await watch.close();
});

it.each([
  ["hangs", () => new Promise<void>(() => undefined), [undefined]],
  ["fails", () => Promise.reject(new CredentialError("client", "x")), [expect.any(CredentialError)]],
  ["works", () => Promise.resolve(), []],
])("a note whose store %s is given up within the time for it, and told", async (_state, remove, told) => {
  const failures: unknown[] = [];
  const watch = new ReplicaWatch({
    replica: "a",
    ledgerId: "id",
    notes: { write: async () => undefined, list: async () => [], remove, close: async () => undefined },
    credentials: { load: () => credentials },
    list: [],
    onMismatch: () => undefined,
    onFailure: (error) => failures.push(error),
    closeMs: 50,
  });
  await watch.close();
  expect(failures).toEqual(told);
});
