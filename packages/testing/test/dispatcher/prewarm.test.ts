import { type ExecutionRequest, type ExecutionRequestInput, prewarmSchema } from "@cellkit/execution";
import { expect, it } from "vitest";
import { prewarmLimitMs } from "../../src/dispatcher/admission.ts";
import { dispatcher, exampleRequest, until } from "../../src/index.ts";
import { call, submit } from "../support/call.ts";

it("a prewarm answers what it saw, one at a time, with another epoch in each life", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  await using it = await dispatcher({ prewarm: () => promise });
  const prewarm = (body = JSON.stringify(exampleRequest("a"))) =>
    call(it.origin, "POST", "/v1/artifacts/prewarm", body);
  const first = prewarm();
  await it.received("prewarm");
  await until("the second's refusal", async () => (await prewarm()).status === 503);
  expect((await prewarm()).body).toEqual({ error: "prewarm already in progress" });
  resolve({ checked: true });
  const { processEpoch, requestHash } = prewarmSchema.parse((await first).body);
  expect(requestHash).toMatch(/^blake3:/);
  await it.restart();
  expect(prewarmSchema.parse((await prewarm()).body).processEpoch).not.toBe(processEpoch);
  expect(await prewarm("{")).toMatchObject({ status: 400, body: { error: "invalid prewarm request" } });
  expect(await prewarm(JSON.stringify(exampleRequest(" ")))).toMatchObject({ status: 422 });
  expect(it.runs.size).toBe(0);
});

const prewarm = (origin: string, change: Partial<ExecutionRequestInput> = {}) =>
  call(origin, "POST", "/v1/artifacts/prewarm", JSON.stringify(exampleRequest("a", change)));

it("a prewarm holds capacity like an execution, and gives it back", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using it = await dispatcher({
    prewarm: () => promise,
    node: { maxCells: 1, memoryBytes: 1_048_576 },
  });
  const node = async () => (await call(it.origin, "GET", "/v1/health")).body;
  const first = prewarm(it.origin);
  await until("its reservation", async () => JSON.stringify(await node()).includes('"live_cells":1'));
  expect(await node()).toMatchObject({ ok: false, node: { memory_bytes: 0 } });
  expect(await submit(it.origin, "b")).toMatchObject({ status: 503, body: { reason: "at_capacity" } });
  resolve();
  expect((await first).status).toBe(200);
  expect(await node()).toMatchObject({ ok: true, node: { live_cells: 0, memory_bytes: 1_048_576 } });
  expect((await submit(it.origin, "b")).status).toBe(202);
});

it("a prewarm is refused for a forge, a full node, a check that fails, and one that takes too long", async () => {
  const checks = [() => Promise.reject(new TypeError("not sealed")), () => new Promise(() => undefined)];
  await using it = await dispatcher({ prewarm: () => checks.shift()?.(), node: { maxCells: 1 } });
  const forge = { mote: null, tools: [], invocation: null, forge: { task: "Print a prime number." } };
  const agent = { execution: { lane: "agent", requireHardwareIsolation: true } } as const;
  expect((await prewarm(it.origin, { ...forge, ...agent })).status).toBe(422);
  const refused = (reason: string) => ({
    status: 422,
    body: { error: "sealed prewarm verification refused", reason },
  });
  expect(await prewarm(it.origin)).toMatchObject(refused("not sealed"));
  const { capabilities } = exampleRequest("a");
  expect(await prewarm(it.origin, { capabilities: { ...capabilities, timeoutMs: 20 } })).toMatchObject(
    refused("it was not done within 20 ms"),
  );
  it.change({ maxCells: 0 });
  expect(await prewarm(it.origin)).toMatchObject({
    status: 503,
    body: { error: "prewarm admission refused", reason: "at_capacity" },
  });
  it.change({ maxCells: 1 });
  expect((await prewarm(it.origin)).status).toBe(200);
});

it.each([
  [29_999n, 29_999],
  [30_000n, 30_000],
  [2n ** 64n - 1n, 30_000],
])("a prewarm that allows %i ms has %i: its request's time, and no more than 30 s", (timeoutMs, limitMs) => {
  expect(prewarmLimitMs({ capabilities: { timeoutMs } } as ExecutionRequest)).toBe(limitMs);
});
