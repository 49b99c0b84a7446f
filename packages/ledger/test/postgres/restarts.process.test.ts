import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { LedgerUnavailableError } from "../../src/errors.ts";
import type { Claim, StoredLedger } from "../../src/ledger.ts";
import { openPostgresLedger } from "../../src/postgres/index.ts";
import { PostgresServer } from "../support/postgres-server.ts";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

const WORKER_COUNT = 32;
/** Much longer than a restart takes; much shorter than one. */
const PATIENT_MS = 60_000;
const HASTY_MS = 60;

let names = 0;
const freshName = () => `restarts-${names++}`;

async function open(connection: string, name: string, timeoutMs = PATIENT_MS): Promise<StoredLedger> {
  const ledger = await openPostgresLedger({ connection, name, timeoutMs });
  onTestFinished(() => ledger.close());
  return ledger;
}

/** What each id's claims were answered. */
type Answers = Map<string, (Claim | LedgerUnavailableError)[]>;

/** Claims ids without end, 32 at once, each by two rivals, until stopped; answers what each was told. */
function storm(rivals: readonly [StoredLedger, string][]) {
  const answers: Answers = new Map();
  let stopped = false;
  let next = 0;
  const work = async () => {
    while (!stopped) {
      const id = `id ${next++}`;
      const claims = rivals.map(([ledger, owner]) =>
        ledger
          .claim(id, "body", async () => owner)
          .catch((error: unknown) => {
            if (error instanceof LedgerUnavailableError) return error;
            throw error;
          }),
      );
      answers.set(id, await Promise.all(claims));
    }
  };
  const workers = Array.from({ length: WORKER_COUNT }, work);
  return {
    answers,
    async stop(): Promise<Answers> {
      stopped = true;
      await Promise.all(workers);
      return answers;
    },
  };
}

/** No acknowledgement is lost, no id has two owners, what failed for sure is not there, and what is ambiguous is settled by a lookup. */
async function judge(
  answers: Answers,
  ledger: StoredLedger,
): Promise<{ ambiguous: number; recorded: number }> {
  let ambiguous = 0;
  let recorded = 0;
  const ids = [...answers.keys()];
  const owners = await Promise.all(ids.map((id) => ledger.lookup(id)));
  for (const [index, id] of ids.entries()) {
    const [told, owner] = [answers.get(id) ?? [], owners[index]];
    const news = told.filter((answer) => !(answer instanceof Error) && answer.kind === "new");
    expect(news.length, `claims of ${id} that were new`).toBeLessThanOrEqual(1);
    for (const answer of told) {
      if (answer instanceof Error) continue;
      expect(answer, `an answer for ${id}`).toEqual({ kind: answer.kind, owner });
    }
    const unsure = told.filter((answer) => answer instanceof Error && answer.recorded === "maybe");
    if (owner !== undefined) expect(news.length + unsure.length, `writers of ${id}`).toBeGreaterThan(0);
    ambiguous += unsure.length;
    recorded += owner === undefined ? 0 : 1;
  }
  expect(await ledger.count()).toBe(recorded);
  return { ambiguous, recorded };
}

const crashes: [string, (running: PostgresServer) => Promise<void>][] = [
  ["killed", (running) => running.stop("kill")],
  ["stopped at once, without a checkpoint", (running) => running.stop("immediate")],
  ["stopped in order", (running) => running.stop("fast")],
];

/** All of them, and the standby, take half a minute. */
const isLong = inject("size") === "long";

describe.each(isLong ? crashes : crashes.slice(0, 1))(
  "a server that is %s while claims are written, and started again,",
  (_, crash) => {
    it("loses no acknowledgement; who is hasty is told that a claim is ambiguous, and a lookup settles it", async ({
      skip,
    }) => {
      const running = server ?? skip();
      const name = freshName();
      const patient = await open(running.url(), name);
      const hasty = await openWhenReady(running, name);
      const { answers, stop } = storm([
        [patient, "http://patient"],
        [hasty, "http://hasty"],
      ]);
      await expect.poll(() => answers.size, { timeout: 60_000, interval: 5 }).toBeGreaterThan(100);
      await crash(running);
      await sleep(2 * HASTY_MS);
      await running.boot();
      const before = answers.size;
      await expect.poll(() => answers.size, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before + 50);
      const all = await stop();
      // The patient one waited for the server and knows how each of its claims ended.
      for (const [answer] of all.values()) expect(answer).not.toBeInstanceOf(Error);
      expect((await judge(all, await open(running.url(), name))).recorded).toBe(all.size);
    });
  },
);

/** The hasty handle, which is less so on a machine that cannot make a connection in its time. */
async function openWhenReady(running: PostgresServer, name: string): Promise<StoredLedger> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await open(running.url(), name, HASTY_MS * 2 ** Math.floor(tries / 10));
    } catch (error) {
      if (!(error instanceof LedgerUnavailableError)) throw error;
    }
  }
}

it("a session's process killed while it writes brings the server down and loses nothing", async ({
  skip,
}) => {
  const running = server ?? skip();
  const ledger = await open(running.url(), freshName());
  const { answers, stop } = storm([[ledger, "http://a"]]);
  await expect.poll(() => answers.size, { timeout: 60_000, interval: 5 }).toBeGreaterThan(100);
  const inserting =
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'cellkit-ledger' AND query LIKE 'INSERT%'";
  let pid = 0;
  await expect
    .poll(
      async () => {
        pid = Number((await running.query(inserting))[0]?.["pid"] ?? 0);
        return pid;
      },
      { timeout: 60_000, interval: 5 },
    )
    .toBeGreaterThan(0);
  process.kill(pid, "SIGKILL");
  const before = answers.size;
  await expect.poll(() => answers.size, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before + 100);
  const all = await stop();
  await judge(all, ledger);
});

describe("claims from two processes", () => {
  const both = async (running: PostgresServer, idsOf: (child: number) => string[]) => {
    const name = freshName();
    const children = [0, 1].map((child) => {
      const task = { connection: running.url(), name, owner: `http://n${child}`, ids: idsOf(child) };
      const script = fileURLToPath(new URL("../support/postgres-claims-child.ts", import.meta.url));
      return startChild(["--conditions=@cellkit/source", script, JSON.stringify(task)]);
    });
    await Promise.all(children.map(({ line }) => line()));
    for (const { process: child } of children) child.stdin?.write("go\n");
    const kinds = await Promise.all(children.map(async ({ line }) => JSON.parse(await line()) as string[]));
    return { kinds: kinds.flat(), ledger: await open(running.url(), name) };
  };

  it("for 96 new ids at once, 48 each, are all new", async ({ skip }) => {
    const { kinds, ledger } = await both(server ?? skip(), (child) =>
      Array.from({ length: 48 }, (_, index) => `id ${child} ${index}`),
    );
    expect(kinds).toEqual(Array.from({ length: 96 }, () => "new"));
    expect(await ledger.count()).toBe(96);
  });

  it("for one id, 48 each, are new once", async ({ skip }) => {
    const { kinds } = await both(server ?? skip(), () => Array.from({ length: 48 }, () => "id"));
    expect(kinds.filter((kind) => kind === "new")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "existing")).toHaveLength(95);
  });
});

it.runIf(isLong)(
  "a standby that takes over has every acknowledged claim, and ambiguous ones are settled there",
  async ({ skip }) => {
    const running = server ?? skip();
    await using standby = await running.addStandby();
    const name = freshName();
    const ledger = await open(running.url(), name, 3_000);
    const { answers, stop } = storm([[ledger, "http://a"]]);
    await expect.poll(() => answers.size, { timeout: 60_000, interval: 5 }).toBeGreaterThan(100);
    // The standby is no place to ask yet: what it does not have could look like nobody's.
    await expect(open(standby.url(), name, 300)).rejects.toThrow(/is a replica/);
    await running.stop("kill");
    await standby.promote();
    const all = await stop();
    const after = await open(standby.url(), name);
    await judge(all, after);
    // Whatever was ambiguous is settled by the same claim.
    const again = await Promise.all(
      [...all.keys()].map((id) => after.claim(id, "body", async () => "http://b")),
    );
    for (const { kind } of again) expect(["new", "existing"]).toContain(kind);
  },
);

function startChild(args: readonly string[]): { process: ChildProcess; line: () => Promise<string> } {
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  return {
    process: child,
    line: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new TypeError("the child ended without a further line");
      return value;
    },
  };
}
