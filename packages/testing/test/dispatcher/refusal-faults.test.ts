import { expect, it } from "vitest";
import { dispatcher, TestingOptionError } from "../../src/index.ts";
import { call, read, submit } from "../support/call.ts";

it("refusals that a dispatcher in order never gives are told by name", async () => {
  await using it = await dispatcher();
  const refused = (status: number, error: string) => ({ status, body: { error } });
  it.fault("submit", { kind: "invalid-request" });
  expect(await submit(it.origin, "a")).toMatchObject(refused(422, "request refused"));
  it.fault("submit", { kind: "journal-unavailable" });
  const unavailable = refused(503, "execution journal unavailable; do not replay");
  expect(await submit(it.origin, "a")).toMatchObject(unavailable);
  expect((await submit(it.origin, "a")).status).toBe(202);
  it.fault({ call: "read", id: "a" }, { kind: "journal-unavailable" });
  expect(await read(it.origin, "a")).toMatchObject(unavailable);
  it.fault("audit", { kind: "no-audit" });
  expect(await call(it.origin, "GET", "/v1/executions/a/audit")).toMatchObject(
    refused(404, "unknown execution audit"),
  );
  it.fault("prewarm", { kind: "template-gone" });
  expect(await call(it.origin, "POST", "/v1/artifacts/prewarm", "{}")).toMatchObject(
    refused(503, "verified template no longer observable in serving cache"),
  );
});

it("a worker that cannot start leaves a record that failed, and nothing ran", async () => {
  await using it = await dispatcher({ node: { maxCells: 1 } });
  it.fault("submit", { kind: "worker-unavailable" });
  expect(await submit(it.origin, "a")).toMatchObject({
    status: 503,
    body: { error: "execution worker unavailable" },
  });
  expect(await submit(it.origin, "a")).toMatchObject({ status: 200, body: { phase: "Failed" } });
  expect((await submit(it.origin, "b")).status).toBe(202);
  expect(it.runs).toEqual(new Map([["b", 1]]));
});

it.each([
  ["read", { kind: "at-capacity" }],
  ["submit", { kind: "no-audit" }],
  ["prewarm", { kind: "other-id" }],
  ["read", { kind: "worker-unavailable" }],
  ["nothing", { kind: "black-hole" }],
] as const)("a fault that makes no sense is refused, also in a script: %s, %j", async (call, fault) => {
  await using it = await dispatcher();
  expect(() => it.fault(call as "read", fault)).toThrow(TestingOptionError);
  expect(() => it.script([{ call: call as "read", fault }])).toThrow(TestingOptionError);
});
