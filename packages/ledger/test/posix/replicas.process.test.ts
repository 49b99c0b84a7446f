import { chmodSync, chownSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LedgerBusyError } from "../../src/errors.ts";
import { chooses, openForTest, temporaryDirectory } from "../support/posix-place.ts";
import { startLines, statusOf, supportProgram } from "../support/process-lines.ts";

interface Answer {
  kind: string;
  owner?: { backend: string };
  recorded?: string;
  why?: string;
  code?: string;
}

/** Claims from two processes at the same time; ids of each. */
async function claimFromTwo(directory: string, ids: readonly [string[], string[]]): Promise<Answer[][]> {
  const children = ids.map((own, index) =>
    startLines(supportProgram("claim-child.ts", directory, `http://node-${index}:8787`, JSON.stringify(own))),
  );
  for (const child of children) expect(await child.next()).toBe("ready");
  for (const child of children) child.tell("go");
  return (await Promise.all(children.map((child) => child.next()))) as Answer[][];
}

const named = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`);

it("96 new ids at once from each of 2 processes are all new, and none is refused", async () => {
  const directory = await temporaryDirectory();
  const answers = await claimFromTwo(directory, [named("a", 96), named("b", 96)]);
  expect(answers.flat().filter(({ kind }) => kind !== "new")).toEqual([]);
  expect(readdirSync(directory).filter((name) => name.endsWith(".json"))).toHaveLength(192);
});

it("a process that may open few files claims 200 new ids at once", async () => {
  const directory = await temporaryDirectory();
  const ids = JSON.stringify(named("few", 200));
  const child = startLines([
    ...["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"],
    ...supportProgram("claim-child.ts", directory, "http://a:8787", ids),
  ]);
  expect(await child.next()).toBe("ready");
  child.tell("go");
  const answers = (await child.next()) as Answer[];
  expect(answers.filter(({ kind }) => kind !== "new")).toEqual([]);
});

it("96 claims of one id from 2 processes: exactly one is new, and all name its owner", async () => {
  const directory = await temporaryDirectory();
  const ids = Array.from({ length: 48 }, () => "the id");
  const answers = (await claimFromTwo(directory, [ids, ids])).flat();
  expect(answers.filter(({ kind }) => kind === "new")).toHaveLength(1);
  expect(answers.filter(({ kind }) => kind === "existing")).toHaveLength(95);
  expect(new Set(answers.map(({ owner }) => owner?.backend)).size).toBe(1);
});

it("waits for a lock that flock(1) holds, and gives up in time", async () => {
  const directory = await temporaryDirectory();
  const patient = await openForTest({ directory, lockTimeoutMs: 60_000 });
  const hasty = await openForTest({ directory, lockTimeoutMs: 40 });
  await patient.claim("known", "body", chooses());
  const holder = startLines([
    "flock",
    "--exclusive",
    join(directory, "ownership.lock"),
    "sh",
    "-c",
    "echo '\"held\"'; read line; echo '\"free\"'",
  ]);
  expect(await holder.next()).toBe("held");
  const waiting = patient.claim("a", "body", chooses());
  const refused = hasty.claim("b", "body", chooses());
  await expect(refused).rejects.toThrow(LedgerBusyError);
  await expect(refused).rejects.toThrow(/not free for [0-9]+ ms/);
  // Neither a look nor a known id needs the lock.
  expect(await hasty.lookup("known")).toBeDefined();
  expect((await hasty.claim("known", "body", chooses())).kind).toBe("existing");
  expect(readdirSync(directory).filter((name) => name.endsWith(".json"))).toHaveLength(1);
  holder.tell("go");
  expect((await waiting).kind).toBe("new");
  expect((await hasty.claim("b", "body", chooses())).kind).toBe("new");
});

it("flock(1) respects our lock", async () => {
  const directory = await temporaryDirectory();
  const { LedgerDirectory } = await import("../../src/posix/ledger-directory.ts");
  const { LedgerLock } = await import("../../src/posix/ledger-lock.ts");
  const { immediateCalls } = await import("../../src/posix/file-calls.ts");
  const opened = await LedgerDirectory.open(directory, immediateCalls);
  const lock = new LedgerLock(opened, 2_000, () => undefined);
  const tryIt = () => statusOf(["flock", "--nonblock", join(directory, "ownership.lock"), "true"]);
  const inside = await lock.hold(async () => tryIt(), { sinceMs: performance.now() });
  expect({ inside, afterwards: tryIt() }).toEqual({ inside: 1, afterwards: 0 });
  await lock.close();
  await opened.close();
});

const NOBODY = 65_534;

it.skipIf(process.getuid?.() !== 0)(
  "an unreadable directory is said plainly (needs: root, to become another user)",
  async () => {
    const top = await temporaryDirectory();
    chmodSync(top, 0o755);
    const directory = join(top, "ledger");
    const start = (ids: string[]) =>
      startLines(supportProgram("claim-child.ts", directory, "http://a:8787", JSON.stringify(ids)), {
        uid: NOBODY,
        gid: NOBODY,
      });
    const refused = (await start([]).next()) as Answer[];
    expect(refused).toEqual([
      expect.objectContaining({ code: "CELLKIT_LEDGER_UNAVAILABLE", why: expect.stringContaining("EACCES") }),
    ]);
    expect(existsSync(directory)).toBe(false);
    chownSync(top, NOBODY, NOBODY);
    const child = start(["a", "b"]);
    expect(await child.next()).toBe("ready");
    chmodSync(directory, 0o000);
    child.tell("go");
    const answers = (await child.next()) as Answer[];
    chmodSync(directory, 0o755);
    for (const answer of answers)
      expect(answer).toMatchObject({ code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "no" });
    expect(readdirSync(directory).filter((name) => name.endsWith(".json"))).toEqual([]);
  },
);

const namespace = ["unshare", "--map-root-user", "--mount"];
const canMount = statusOf([...namespace, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]) === 0;

it.skipIf(!canMount && process.env["CI"] === undefined)(
  "a full disk refuses new ids, keeps every acknowledged one, and ends when there is room (needs: unshare and tmpfs)",
  async () => {
    const directory = await temporaryDirectory();
    const mount = ["sh", "-c", 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"', directory];
    const child = startLines([...namespace, ...mount, ...supportProgram("full-disk-child.ts", directory)]);
    const result = (await child.next()) as Record<string, unknown>;
    expect(result).toMatchObject({
      failures: ["CELLKIT_LEDGER_UNAVAILABLE no"],
      kept: result["acknowledged"],
      counted: result["acknowledged"],
      afterwards: "new",
    });
    expect(result["acknowledged"]).toBeGreaterThan(50);
    expect(result["why"]).toContain("its disk is full");
  },
);
