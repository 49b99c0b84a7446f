import { describe, expect, it } from "vitest";
import * as errors from "../src/errors.ts";
import { dispatcher, faultProxy, fleet, until } from "../src/index.ts";
import { failureOf } from "./support/call.ts";

const cause = new TypeError("below");
const options = { cause };

const rows: readonly (readonly [errors.TestingError, string, string, string])[] = [
  [new errors.TestingOptionError("port", "is -1", options), "TestingOptionError", "OPTION", "port is -1"],
  [
    new errors.ScriptError(2, "read never came", options),
    "ScriptError",
    "SCRIPT",
    "script, step 2: read never came",
  ],
  [
    new errors.WaitTimeoutError("a call", 5, options),
    "WaitTimeoutError",
    "TIMEOUT",
    "a call: not within 5 ms",
  ],
  [new errors.RanTwiceError(new Map([["a", 2]]), options), "RanTwiceError", "RAN_TWICE", "a 2 times"],
  [new errors.JournalError("/j", "is no entry", options), "JournalError", "JOURNAL", "/j is no entry"],
  [new errors.ListenError("h", 7, options), "ListenError", "LISTEN", "cannot listen on h, port 7"],
  [new errors.ProcessError("it ended", options), "ProcessError", "PROCESS", "it ended"],
];

it.each(rows)("%s has a name, a code, a message and its cause", (error, name, code, message) => {
  expect(error).toBeInstanceOf(errors.TestingError);
  expect(error).toMatchObject({ name, code: `CELLKIT_TESTING_${code}`, cause });
  expect(error.message).toContain(message);
});

it("all classes are in the table", () => {
  const classes = Object.keys(errors).filter((name) => name !== "TestingError");
  expect(rows.map(([, name]) => name).toSorted()).toEqual(classes.toSorted());
});

it("what was wrong can be read from their fields", () => {
  const many = new Map(Array.from({ length: 7 }, (_, n) => [`id-${n}`, 2]));
  expect(new errors.RanTwiceError(many)).toMatchObject({ runs: many });
  expect(new errors.RanTwiceError(many).message).toContain("and 2 more ids");
  expect(new errors.TestingOptionError("port", "x").option).toBe("port");
  expect(new errors.ScriptError(2, "x").step).toBe(2);
  expect(new errors.JournalError("/j", "x").path).toBe("/j");
});

it.each([
  ["port", { port: -1 }],
  ["port", { port: 1.5 }],
  ["token", { token: "short" }],
  ["token", { token: "backend-token-for-tests-only", tokenFile: "/t" }],
])("a dispatcher with a wrong %s is not started: %j", async (option, wrong) => {
  expect(await failureOf(dispatcher(wrong))).toMatchObject({ code: "CELLKIT_TESTING_OPTION", option });
});

describe("a port that somebody else has", () => {
  const taken = { code: "CELLKIT_TESTING_LISTEN", cause: expect.objectContaining({}) };

  it("is told by a dispatcher, with what to do", async () => {
    await using it = await dispatcher();
    const port = Number(new URL(it.origin).port);
    const error = await failureOf(dispatcher({ port }));
    expect(error).toMatchObject({ ...taken, host: "127.0.0.1", port, cause: { code: "EADDRINUSE" } });
    expect(String(error)).toContain(`port ${port} (EADDRINUSE); somebody else has it: take another port`);
  });

  it("is told by a dispatcher's next life, which is none then", async () => {
    await using first = await dispatcher();
    await first.kill();
    await using _second = await dispatcher({ port: Number(new URL(first.origin).port) });
    expect(await failureOf(first.restart())).toMatchObject(taken);
    expect(first.alive).toBe(false);
  });

  it("is told by a proxy", async () => {
    await using first = await faultProxy("127.0.0.1:1");
    first.refuse();
    await using _second = await dispatcher({ port: first.port });
    expect(await failureOf(first.heal())).toMatchObject(taken);
  });

  it("is told by a node of a fleet", async () => {
    await using nodes = await fleet({ nodeCount: 1 });
    const [node] = nodes.nodes;
    await node?.kill();
    await using _second = await dispatcher({ port: Number(new URL(node?.url ?? "").port) });
    const error = await failureOf(node?.restart() ?? Promise.resolve());
    expect([error, String(error)]).toMatchObject([taken, expect.stringContaining("(EADDRINUSE)")]);
    expect(node?.state).toBe("stopped");
  });
});

it("waiting ends with the condition, the time, the signal, or what the condition throws", async () => {
  expect(await until("it", () => 7)).toBe(7);
  expect(await failureOf(until("it", () => false, { timeoutMs: 5 }))).toBeInstanceOf(errors.WaitTimeoutError);
  const reason = new TypeError("given up");
  expect(await failureOf(until("it", () => false, { signal: AbortSignal.abort(reason) }))).toBe(reason);
  expect(await failureOf(until("it", () => Promise.reject(reason)))).toBe(reason);
});
