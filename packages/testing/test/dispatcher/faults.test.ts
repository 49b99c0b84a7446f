import { describe, expect, it } from "vitest";
import {
  dispatcher,
  exampleRequest,
  RanTwiceError,
  ranAtMostOnce,
  readRuns,
  ScriptError,
  until,
} from "../../src/index.ts";
import { call, failureOf, read, submit } from "../support/call.ts";
import { directory } from "../support/directory.ts";

const interrupted = {
  status: 503,
  body: {
    error: "interrupted execution requires operator reconciliation; teardown is unproven; do not replay",
  },
};

describe("a dispatcher that dies", () => {
  it("before it accepts: nothing ran, and after a restart nobody knows the id", async () => {
    await using it = await dispatcher();
    it.fault("submit", { kind: "die", when: "before-accept" });
    expect((await submit(it.origin, "a")).status).toBeUndefined();
    await until("its death", () => !it.alive);
    expect((await read(it.origin, "a")).status).toBeUndefined();
    await it.restart();
    expect(await read(it.origin, "a")).toMatchObject({ status: 404 });
    expect(it.runs.size).toBe(0);
  });

  it.each([undefined, "files"])(
    "after it accepted: it ran once, is interrupted after a restart, and does not run again (journal: %s)",
    async (kind) => {
      await using it = await dispatcher(kind === undefined ? {} : { journal: await directory() });
      it.fault("submit", { kind: "die", when: "after-accept" });
      expect((await submit(it.origin, "a")).status).toBeUndefined();
      await until("its death", () => !it.alive);
      await it.restart();
      expect(await submit(it.origin, "a")).toMatchObject(interrupted);
      expect(await read(it.origin, "a")).toMatchObject(interrupted);
      expect(ranAtMostOnce(it)).toEqual(new Map([["a", 1]]));
    },
  );

  it("after it answered: the caller has its 202", async () => {
    await using it = await dispatcher();
    it.fault("submit", { kind: "die", when: "after-answer" });
    expect((await submit(it.origin, "a")).status).toBe(202);
    await until("its death", () => !it.alive);
  });

  it("and loses its journal does not know what ran; what ran is known all the same", async () => {
    const journal = await directory();
    await using it = await dispatcher({ journal });
    await submit(it.origin, "a");
    await until("its end", async () => (await read(it.origin, "a")).status === 200);
    await it.restart({ journal: "lost" });
    expect(await read(it.origin, "a")).toMatchObject({ status: 404 });
    await submit(it.origin, "a");
    expect(await failureOf((async () => ranAtMostOnce(await readRuns(journal)))())).toBeInstanceOf(
      RanTwiceError,
    );
    expect(((await failureOf((async () => ranAtMostOnce(it))())) as RanTwiceError).runs).toEqual(
      new Map([["a", 2]]),
    );
  });

  it("has no entry in its next life that was being written when it died", async () => {
    const it = await dispatcher({ journal: await directory() });
    for (let round = 0; round < 20; round += 1) {
      // Its end is on the way into the journal, or is not.
      await submit(it.origin, `r${round}`);
      await it.restart({ journal: "lost" });
      expect(await read(it.origin, `r${round}`)).toMatchObject({ status: 404 });
    }
    await it.close();
  });
});

describe("faults of one call", () => {
  it("a black hole answers nothing and accepts nothing; a swallowed call ran", async () => {
    await using it = await dispatcher();
    it.fault({ call: "submit", id: "a" }, { kind: "black-hole" });
    it.fault({ call: "submit", id: "b" }, { kind: "swallow" });
    const silent = Promise.all([submit(it.origin, "a"), submit(it.origin, "b")]);
    await it.received("submit", { count: 2 });
    await until("the run of b", () => it.runs.has("b"));
    expect(it.runs.has("a")).toBe(false);
    expect((await submit(it.origin, "a")).status).toBe(202);
    await it.kill();
    expect((await silent).map(({ status }) => status)).toEqual([undefined, undefined]);
  });

  it("late and held answers come when they should", async () => {
    await using it = await dispatcher();
    const { promise, resolve } = Promise.withResolvers<void>();
    it.fault("submit", { kind: "held", until: promise });
    const held = submit(it.origin, "a");
    await until("its run", () => it.runs.has("a"));
    expect(it.calls[0]?.status).toBeUndefined();
    resolve();
    expect((await held).status).toBe(202);
    it.fault("read", { kind: "late", delayMs: 40 });
    const startMs = performance.now();
    expect((await read(it.origin, "a")).status).toBe(200);
    expect(performance.now() - startMs).toBeGreaterThan(35);
  });

  it("lies are told: another id, other lengths, a cut, garbage, any answer", async () => {
    await using it = await dispatcher();
    await submit(it.origin, "a");
    await until("its end", async () =>
      JSON.stringify((await read(it.origin, "a")).body).includes("Succeeded"),
    );
    it.fault("read", { kind: "other-id" });
    expect((await read(it.origin, "a")).body).toMatchObject({
      requestId: "some-other-execution",
      receipt: { requestId: "some-other-execution" },
    });
    const honest = await read(it.origin, "a");
    const lengthOf = ({ bytes }: { bytes: Buffer }) =>
      Number(/Content-Length: (\d+)/.exec(bytes.toString())?.[1]);
    it.fault("read", { kind: "wrong-length", differenceBytes: 5 });
    expect(lengthOf(await read(it.origin, "a"))).toBe(lengthOf(honest) + 5);
    it.fault("read", { kind: "cut", afterBytes: 30 });
    expect((await read(it.origin, "a")).bytes).toEqual(honest.bytes.subarray(0, 30));
    it.fault("read", { kind: "garbage" });
    expect((await read(it.origin, "a")).bytes).toHaveLength(256);
    it.fault("read", { kind: "garbage", bytes: "SSH-2.0" });
    expect((await read(it.origin, "a")).bytes.toString()).toBe("SSH-2.0");
    it.fault("read", { kind: "answer", status: 418, body: { any: "thing" } });
    expect(await read(it.origin, "a")).toMatchObject({ status: 418, body: { any: "thing" } });
  });

  it("at-capacity and reset strike as often as they are told", async () => {
    await using it = await dispatcher();
    it.fault("submit", { kind: "at-capacity" }, { times: 2 });
    it.fault("submit", { kind: "reset", when: "after-accept" });
    expect((await submit(it.origin, "a")).status).toBe(503);
    expect((await submit(it.origin, "a")).status).toBe(503);
    expect((await submit(it.origin, "a")).status).toBeUndefined();
    expect(it.runs.get("a")).toBe(1);
    expect((await submit(it.origin, "a")).status).not.toBeUndefined();
    it.fault("submit", { kind: "reset", when: "before-accept" });
    expect((await submit(it.origin, "b")).status).toBeUndefined();
    expect(it.runs.has("b")).toBe(false);
  });

  it("a promise that is rejected holds an answer no longer", async () => {
    await using it = await dispatcher();
    it.fault("read", { kind: "held", until: Promise.reject(new TypeError("the test's own")) });
    it.script([{ call: "read", fault: { kind: "held", until: Promise.reject(new TypeError("another")) } }]);
    for (let n = 0; n < 2; n++) {
      expect((await read(it.origin, "a")).status).toBe(404);
      it.verify();
    }
  });

  it("one that refuses is not there, until it is healed", async () => {
    await using it = await dispatcher();
    await it.refuse();
    expect((await read(it.origin, "a")).status).toBeUndefined();
    expect(it.calls).toHaveLength(0);
    it.fault("read", { kind: "black-hole" });
    await it.heal();
    expect((await read(it.origin, "a")).status).toBe(404);
  });
});

describe("a script", () => {
  it("that is followed says nothing", async () => {
    await using it = await dispatcher();
    it.script([
      { call: "submit", id: "a", body: JSON.stringify(exampleRequest("a")) },
      { call: "read", id: "a", answer: { status: 200, body: { requestId: "a", phase: "Running" } } },
      { call: "read", id: "a", fault: { kind: "reset", when: "before-accept" } },
    ]);
    expect((await submit(it.origin, "a")).status).toBe(202);
    expect((await call(it.origin, "GET", "/v1/health")).status).toBe(200);
    expect((await read(it.origin, "a")).body).toMatchObject({ phase: "Running" });
    expect((await read(it.origin, "a")).status).toBeUndefined();
    await it.followed();
    it.verify();
  });

  it.each([
    ["another call", "GET", "/v1/executions/a", "submit of a was expected, but read of a came"],
    ["another id", "POST", "/v1/executions", "submit of a was expected, but submit of b came"],
  ])("fails on the first call that deviates: %s", async (_what, method, path, problem) => {
    const it = await dispatcher();
    it.script([{ call: "submit", id: "a" }]);
    const body = method === "POST" ? JSON.stringify(exampleRequest("b")) : "";
    expect((await call(it.origin, method, path, body)).status).toBeUndefined();
    expect((await submit(it.origin, "a")).status).toBeUndefined();
    const error = await failureOf(it.followed());
    expect(error).toBeInstanceOf(ScriptError);
    expect(String(error)).toContain(`step 0: ${problem}`);
    expect(String(error)).toContain("no answer");
    expect(String(error)).not.toContain("backend-token");
    expect(it.runs.size).toBe(0);
    await it.close();
  });

  it("fails when calls are missing, when there are more, and when a body is another", async () => {
    const missing = await dispatcher();
    missing.script([{ call: "submit", id: "a" }, { call: "read" }]);
    await submit(missing.origin, "a");
    expect(String(await failureOf(missing.close()))).toContain("step 1: read never came");

    const more = await dispatcher();
    more.script([]);
    await read(more.origin, "a");
    expect(String(await failureOf(more.close()))).toContain(
      "no more calls were expected, but read of a came",
    );

    const body = await dispatcher();
    body.script([{ call: "submit", body: "{}" }]);
    await submit(body.origin, "a");
    expect(String(await failureOf(body.close()))).toContain("first difference at character 1");

    const tested = await dispatcher();
    tested.script([{ call: "submit", body: (text) => text.includes("nothing of it") }]);
    await submit(tested.origin, "a");
    expect(() => tested.verify()).toThrow("a body that its test refuses");
    await tested.close();
  });

  it("that names a health call counts health calls", async () => {
    const it = await dispatcher();
    it.script([{ call: "health", answer: { status: 200, body: { ok: false, kvm: true } } }]);
    expect((await call(it.origin, "GET", "/v1/health")).body).toMatchObject({ ok: false });
    await call(it.origin, "GET", "/v1/health");
    expect(() => it.verify()).toThrow(ScriptError);
    await it.close();
  });
});

it("a death by a fault is told to onDeath, in place of dying", async () => {
  const deaths: string[] = [];
  await using it = await dispatcher({ onDeath: () => void deaths.push("told") });
  it.fault("submit", { kind: "die", when: "after-answer" });
  expect((await submit(it.origin, "a")).status).toBe(202);
  await until("the news", () => deaths.length === 1);
  expect(it.alive).toBe(true);
  expect((await submit(it.origin, "a")).status).toBe(200);
});
