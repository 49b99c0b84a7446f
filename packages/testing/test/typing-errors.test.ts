// A slip of the pen must not make a test that cannot fail: what there is not is refused where it is given.
import { describe, expect, it, onTestFinished } from "vitest";
import { type CallKind, dispatcher, dispatcherProcess, type Fault, type NodeOptions } from "../src/index.ts";
import { mockedNetwork, type RouterFault, routerHandlers } from "../src/msw/index.ts";
import { failureOf, submit } from "./support/call.ts";
import { directory } from "./support/directory.ts";

const url = "http://router.test:8787";
const option = (name: string) => ({ code: "CELLKIT_TESTING_OPTION", option: name });

/** What a function throws. */
function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

const faults: readonly (readonly [unknown, unknown, string])[] = [
  ["submit", { kind: "blackhole" }, "fault.kind"],
  ["submit", { kind: "toString" }, "fault.kind"],
  ["submit", undefined, "fault.kind"],
  ["submit", { kind: "late" }, "fault.delayMs"],
  ["submit", { kind: "late", delayMs: "5" }, "fault.delayMs"],
  ["submit", { kind: "late", delayMs: 5, delay: 5 }, "fault"],
  ["submit", { kind: "held", until: 5 }, "fault.until"],
  ["submit", { kind: "reset", when: "before_accept" }, "fault.when"],
  ["submit", { kind: "other-id", id: 7 }, "fault.id"],
  ["submit", { kind: "answer", status: 0, body: {} }, "fault.status"],
  ["submit", { kind: "answer", status: 200 }, "fault.body"],
  ["sumbit", { kind: "black-hole" }, "match.call"],
  [{ call: "sumbit" }, { kind: "black-hole" }, "match.call"],
  [{ call: "submit", ID: "a" }, { kind: "black-hole" }, "match"],
];

describe("a fault that there is not", () => {
  it.each(faults)("of %j: %j", async (match, fault, name) => {
    await using it = await dispatcher();
    const router = routerHandlers({ url });
    const given = [match as CallKind, fault as Fault & RouterFault] as const;
    expect(thrownBy(() => it.fault(...given))).toMatchObject(option(name));
    expect(thrownBy(() => router.fault(...given))).toMatchObject(option(name));
  });

  it.each([
    [{ kind: "die", when: "later" }, "fault.when"],
    [{ kind: "cut", afterBytes: -1 }, "fault.afterBytes"],
    [{ kind: "wrong-length", differenceBytes: 0.5 }, "fault.differenceBytes"],
    [{ kind: "garbage", bytes: 5 }, "fault.bytes"],
    [{ kind: "owner-lost" }, "fault.kind"],
  ])("of a dispatcher: %j", async (fault, name) => {
    await using it = await dispatcher();
    expect(thrownBy(() => it.fault("read", fault as Fault))).toMatchObject(option(name));
  });

  it.each([
    [{ kind: "outcome-unknown" }, "fault.ran"],
    [{ kind: "swallow" }, "fault.kind"],
  ])("of a router: %j", (fault, name) => {
    const router = routerHandlers({ url });
    expect(thrownBy(() => router.fault("submit", fault as RouterFault))).toMatchObject(option(name));
  });

  it.each([{ times: 0 }, { times: 1.5 }, { time: 2 }])("that strikes %j times", async (options) => {
    await using it = await dispatcher();
    expect(thrownBy(() => it.fault("read", { kind: "swallow" }, options))).toMatchObject({
      code: "CELLKIT_TESTING_OPTION",
    });
  });
});

it.each([
  [{ call: "sumbit" }, "script[1].call"],
  [{ call: "submit", fautl: { kind: "swallow" } }, "script[1]"],
  [{ call: "submit", body: 7 }, "script[1].body"],
  [{ call: "submit", answer: { status: "200", body: {} } }, "script[1].answer.status"],
  [{ call: "submit", fault: { kind: "swalow" } }, "fault.kind"],
])("a step that no call could follow: %j", async (step, name) => {
  await using it = await dispatcher();
  const error = thrownBy(() => it.script([{ call: "read" }, step as { call: CallKind }]));
  expect(error).toMatchObject(option(name));
});

it("a call that there is not is waited for by nobody", async () => {
  await using it = await dispatcher();
  expect(await failureOf(it.received("sumbit" as CallKind))).toMatchObject(option("match.call"));
});

describe("a node", () => {
  it.each([
    [{ naem: "a" }, "node"],
    [{ name: " " }, "node.name"],
    [{ kvm: "no" }, "node.kvm"],
    [{ maxCells: -1 }, "node.maxCells"],
    [{ memoryBytes: 0.5 }, "node.memoryBytes"],
    [{ egressHosts: ["Good.example"] }, "node.egressHosts"],
  ])("that there cannot be: %j", async (given, name) => {
    const node = given as NodeOptions;
    const wrong = option(name);
    await using it = await dispatcher();
    const router = routerHandlers({ url });
    expect(thrownBy(() => it.change(node))).toMatchObject(wrong);
    expect(thrownBy(() => router.change(0, node))).toMatchObject(wrong);
    expect(thrownBy(() => routerHandlers({ url, backends: [{}, node] }))).toMatchObject(wrong);
    expect(await failureOf(dispatcher({ node }))).toMatchObject(wrong);
    expect(await failureOf(dispatcherProcess({ journal: await directory(), node }))).toMatchObject(wrong);
  });

  it("whose members are left undefined keeps what it has", async () => {
    await using it = await dispatcher({ node: { maxCells: undefined } as unknown as NodeOptions });
    it.change({ name: undefined } as unknown as NodeOptions);
    expect((await submit(it.origin, "a")).status).toBe(202);
  });

  it("of a router keeps its origin", () => {
    const router = routerHandlers({ url });
    router.change(0, { origin: router.origins[0] ?? "" });
    expect(thrownBy(() => router.change(0, { origin: "http://other" }))).toMatchObject(option("node.origin"));
  });
});

it("an option that there is not", async () => {
  const wrong = { journl: "/tmp", backend: [] };
  expect(await failureOf(dispatcher(wrong as object))).toMatchObject(option("options"));
  expect(thrownBy(() => routerHandlers({ url, ...wrong }))).toMatchObject(option("options"));
  expect(await failureOf(dispatcherProcess({} as { journal: string }))).toMatchObject(
    option("options.journal"),
  );
});

describe("finish() of what will never be held fails at once", () => {
  const soon = { timeoutMs: 20_000 };

  it("an id that nobody submitted, one that has ended, and one of another life", async () => {
    await using it = await dispatcher({ run: "hold" });
    expect(await failureOf(it.finish("a", undefined, soon))).toMatchObject(option("id"));
    await submit(it.origin, "a");
    await it.finish("a");
    expect(await failureOf(it.finish("a", undefined, soon))).toMatchObject(option("id"));
    await submit(it.origin, "b");
    await it.restart();
    expect(await failureOf(it.finish("b", undefined, soon))).toMatchObject(option("id"));
  });

  it("any id where nothing is held", async () => {
    await using it = await dispatcher();
    await submit(it.origin, "a");
    expect(await failureOf(it.finish("a", undefined, soon))).toMatchObject(option("run"));
  });

  it("of a mocked router, too", async () => {
    const router = routerHandlers({ url, run: "hold" });
    const network = mockedNetwork(router.handlers);
    onTestFinished(() => network.close());
    expect(await failureOf(router.finish("a", undefined, soon))).toMatchObject(option("id"));
    const nothingHeld = routerHandlers({ url });
    expect(await failureOf(nothingHeld.finish("a", undefined, soon))).toMatchObject(option("run"));
  });
});
