// The specification's own cases, over TCP.
import { describe, expect, it } from "vitest";
import {
  cases,
  emptyPlane,
  exceptionFor,
  exceptions,
  expectRaw,
  expectVector,
  rawCases,
} from "./support/concerned-vectors.ts";
import { holdSocketTimeouts, holdTime } from "./support/held-time.ts";
import { startLocalRouter } from "./support/local-router.ts";
import { type RawAnswer, rawCall } from "./support/raw-call.ts";
import { runVector } from "./support/vector-run.ts";

/** Nothing is to end because this machine is busy. */
function holdAll(): void {
  holdTime();
  holdSocketTimeouts();
}

it("most cases are kept as they are", () => {
  expect([cases.length, exceptions.length]).toEqual([56, 19]);
});

describe("a router over TCP", () => {
  it.each(cases.map((vector) => [vector.name, vector] as const))("%s", async (_name, vector) => {
    if (vector.lockHeldElsewhere !== true) holdAll();
    expectVector(vector, await runVector(vector, startLocalRouter));
  });
});

describe("answered otherwise", () => {
  it.each(exceptions.map((vector) => [vector.name, vector] as const))("%s", async (_name, vector) => {
    holdAll();
    const exception = exceptionFor(vector);
    const { answer, calls } = await runVector(vector, startLocalRouter);
    expect(answer?.status).toBe(exception?.status);
    if (exception?.error === undefined) return;
    expect(JSON.parse(answer?.body ?? "")).toEqual({ error: exception.error });
    expect(calls).toEqual([]);
  });
});

describe("raw requests", () => {
  it.each(rawCases)("%s", async (_name, vector) => {
    let answer: RawAnswer | undefined;
    await runVector(emptyPlane, async (place) => {
      const router = await startLocalRouter(place);
      answer = await rawCall(router.port, vector.request, { halfClose: vector.halfCloseAfterWrite === true });
      return router;
    });
    expectRaw(answer, vector);
  });
});
