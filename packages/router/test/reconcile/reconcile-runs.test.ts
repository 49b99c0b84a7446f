// Where runs are, by the ledger and the dispatchers that a test has made.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDigest, openPosixLedger, type StoredLedger } from "@cellkit/ledger";
import { dispatcher, type ScriptedDispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isSettled, type ReconciledRun, reconcileRuns } from "../../src/index.ts";
import { judgeRun, knowledgeOf } from "../../src/reconcile/judge-run.ts";
import { callBytes, executionBytes } from "../support/execution-request.ts";
import { rawCall } from "../support/raw-call.ts";
import { tokens } from "../support/router.ts";

let directory: string;
let ledger: StoredLedger;
let first: ScriptedDispatcher;
let second: ScriptedDispatcher;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cellkit-reconcile-"));
  ledger = await openPosixLedger({ directory });
  const options = { token: tokens.backend, run: "hold" } as const;
  [first, second] = [await dispatcher(options), await dispatcher(options)];
});
afterEach(async () => {
  await Promise.all([first.close(), second.close(), ledger.close()]);
  await rm(directory, { recursive: true });
});

const claim = (id: string, owner: string) => ledger.claim(id, executionBytes(id), async () => owner);
const submit = (id: string, to: ScriptedDispatcher) =>
  rawCall(
    Number(new URL(to.origin).port),
    callBytes("POST /v1/executions", tokens.backend, executionBytes(id)),
  );

async function reconcile(ids: readonly string[], everywhere = false) {
  const runs: ReconciledRun[] = [];
  const plane = {
    ledger,
    origins: [first.origin, second.origin],
    token: Buffer.from(tokens.backend),
  };
  const summary = await reconcileRuns(ids, plane, { everywhere, onRun: (run) => runs.push(run) });
  return { runs, summary, states: runs.map(({ state }) => state) };
}

describe("runs are reconciled with their owners", () => {
  it("each is told by what its owner says, in the order of the ids, and nothing but reads was sent", async () => {
    for (const id of ["done", "runs", "cut"]) {
      await claim(id, first.origin);
      await submit(id, first);
    }
    await first.finish("done");
    await claim("never-arrived", second.origin);
    await claim("elsewhere-now", "http://gone:8787");
    await submit("before-the-ledger", second);
    const sent = second.calls.length;
    const { runs, states } = await reconcile([
      ...["done", "runs", "never-arrived", "elsewhere-now"],
      ...["before-the-ledger", "never-submitted", "no id"],
    ]);
    expect(states).toEqual(["final", "active", "lost", "removed", "unrecorded", "unclaimed", "invalid"]);
    expect(runs.map(isSettled)).toEqual([true, false, false, false, false, true, false]);
    expect(runs[0]).toMatchObject({ owner: first.origin, phase: "Succeeded" });
    expect(runs[1]?.phase).toBe("Running");
    expect(runs[4]?.detail).toMatch(/Never submit it through this ledger, not when it is final either/);
    expect(new Set(second.calls.slice(sent).map(({ call }) => call))).toEqual(new Set(["read"]));
  });

  it("an owner that is not in the list is not asked, and sees no token", async () => {
    await using removed = await dispatcher({ token: tokens.backend, run: "hold" });
    await claim("run-1", removed.origin);
    expect((await reconcile(["run-1"])).states).toEqual(["removed"]);
    expect((await reconcile(["run-1"], true)).states).toEqual(["removed"]);
    expect(removed.calls).toEqual([]);
  });

  it("a dispatcher that was restarted says that its run was interrupted, and one that is gone says nothing", async () => {
    for (const [id, to] of [["cut", first] as const, ["silent", second] as const]) {
      await claim(id, to.origin);
      await submit(id, to);
    }
    await first.restart();
    await second.kill();
    const { states, runs } = await reconcile(["cut", "silent", "nobody-knows"]);
    expect(states).toEqual(["interrupted", "unknown", "unknown"]);
    expect(runs[1]?.detail).toContain(second.origin);
  });

  it("what ran beside its owner, or twice, is found when all are asked", async () => {
    await claim("beside", first.origin);
    await submit("beside", second);
    await claim("both", first.origin);
    await submit("both", first);
    await submit("both", second);
    expect((await reconcile(["beside", "both"])).states).toEqual(["lost", "active"]);
    expect((await reconcile(["beside", "both"], true)).states).toEqual(["misplaced", "twice"]);
  });

  it("records whose ids were not given are counted by owner, since no one can tell their ids", async () => {
    for (let count = 0; count < 40; count++) await claim(`run-${count}`, first.origin);
    await claim("other", second.origin);
    const ids = Array.from({ length: 38 }, (_, count) => `run-${count}`);
    const { summary } = await reconcile(ids);
    expect(summary).toMatchObject({ runCount: 38, states: { lost: 38 }, unreadableCount: 0 });
    expect(summary.otherRecords).toEqual(
      new Map([
        [first.origin, 2],
        [second.origin, 1],
      ]),
    );
  });

  it("an id that comes twice is one run", async () => {
    const { states, summary } = await reconcile(["run-1", "run-1", "run-2", "run-1"]);
    expect([states, summary.runCount]).toEqual([["unclaimed", "unclaimed"], 2]);
  });

  it("a record that cannot be read is told as that", async () => {
    const { key } = await loadDigest();
    await writeFile(join(directory, `${key("broken")}.json`), "{");
    const { states, summary } = await reconcile(["broken"]);
    expect(states).toEqual(["unreadable"]);
    expect(summary.unreadableCount).toBe(1);
  });
});

describe("an answer", () => {
  it.each([
    [200, '{"requestId":"x","phase":"Failed"}', { kind: "record", phase: "Failed", isFinal: true }],
    [202, '{"requestId":"x","phase":"Newer"}', { kind: "record", phase: "Newer", isFinal: false }],
    [200, '{"requestId":"y","phase":"Failed"}', { kind: "unknown", why: "status 200 without its record" }],
    [200, "<html>", { kind: "unknown", why: "status 200 without its record" }],
    [404, '{"error":"unknown execution"}', { kind: "none" }],
    [404, '{"error":"not found"}', { kind: "unknown", why: 'status 404, "not found"' }],
    [404, "", { kind: "unknown", why: "status 404" }],
    [503, '{"error":"interrupted execution; outcome uncertain"}', { kind: "interrupted" }],
    [503, '{"error":"node at capacity"}', { kind: "unknown", why: 'status 503, "node at capacity"' }],
    [401, '{"error":"unauthorized"}', { kind: "unknown", why: 'status 401, "unauthorized"' }],
  ])("of %i %s says no more than it does", (status, body, knowledge) => {
    expect(knowledgeOf("x", { status, body })).toEqual(knowledge);
  });

  it("that nobody was asked for leaves an unclaimed run unknown: it may be anywhere", () => {
    const answers = new Map();
    expect(judgeRun({ owner: undefined, isListed: false, answers })).toMatchObject({ state: "unknown" });
  });

  it("that was not had leaves a claimed run unknown, whoever has none", () => {
    const answers = new Map([["http://b", { kind: "none" } as const]]);
    expect(judgeRun({ owner: "http://a", isListed: true, answers }).state).toBe("unknown");
  });
});
