// The specification's own cases, over TCP.
import { describe, expect, it } from "vitest";
import { startLocalRouter } from "./support/local-router.ts";
import { rawCall } from "./support/raw-call.ts";
import { runVector } from "./support/vector-run.ts";
import { type HttpVector, vectors } from "./support/vectors.ts";

const notServed = "parents, scoped operations and the listing of sandboxes are not served";
/** Cases that are answered otherwise here, why, and how. */
const otherwise: Readonly<Record<string, { reason: string; status: number; error?: string }>> = {
  "capabilities: parent routing configured, client token": {
    reason: `${notServed}: parentRouting is false`,
    status: 200,
  },
  "capabilities: another probe is in flight": {
    reason: "callers share a fan-out that runs, instead of being refused (capabilities.test.ts)",
    status: 200,
  },
  "capabilities: scoped bearer sees only contract intersections": {
    reason: `${notServed}: their token is an unknown one`,
    status: 401,
    error: "unauthorized",
  },
};

const parents = { reason: notServed, status: 503, error: "parent routing is not configured" };
const scoped = { reason: notServed, status: 404, error: "scoped receiver disabled" };
const cells = { reason: notServed, status: 404, error: "not found" };

function exceptionFor({ name, expect: expected }: HttpVector): (typeof otherwise)[string] | undefined {
  if (name in otherwise) return otherwise[name];
  if (name.startsWith("cells:")) return cells;
  if (name.startsWith("parents:"))
    return JSON.stringify(expected).includes(parents.error) ? undefined : parents;
  return name.startsWith("scoped:") && name !== "scoped: disabled" ? scoped : undefined;
}

const cases = vectors.http.filter((vector) => exceptionFor(vector) === undefined);
const exceptions = vectors.http.filter((vector) => exceptionFor(vector) !== undefined);

it("most cases are kept as they are", () => {
  expect([cases.length, exceptions.length]).toEqual([56, 19]);
});

describe("a router over TCP", () => {
  it.each(cases.map((vector) => [vector.name, vector] as const))("%s", async (_name, vector) => {
    const { answer, calls, expectedCalls, files, expectedFiles } = await runVector(vector, startLocalRouter);
    expect(answer?.status).toBe(vector.expect.status);
    // Owners are chosen before the lock, so a lock that is never had may cost probes whose results are thrown away.
    const isProbe = (call: string) => vector.lockHeldElsewhere === true && call.includes("/v1/health");
    expect(calls.filter((call) => !isProbe(call))).toEqual(expectedCalls);
    expect(files).toEqual(expectedFiles);
    const json = JSON.parse(answer?.body ?? "");
    if (vector.expect.json !== undefined) expect(json).toEqual(vector.expect.json);
    if (vector.expect.jsonSubset !== undefined) expect(json).toMatchObject(vector.expect.jsonSubset);
  });
});

describe("answered otherwise", () => {
  it.each(exceptions.map((vector) => [vector.name, vector] as const))("%s", async (_name, vector) => {
    const exception = exceptionFor(vector);
    const { answer, calls } = await runVector(vector, startLocalRouter);
    expect(answer?.status).toBe(exception?.status);
    if (exception?.error === undefined) return;
    expect(JSON.parse(answer?.body ?? "")).toEqual({ error: exception.error });
    expect(calls).toEqual([]);
  });
});

describe("raw requests", () => {
  const base = vectors.http[0] as HttpVector;

  it.each(vectors.raw.map((vector) => [vector.name, vector] as const))("%s", async (_name, vector) => {
    const halfClose = vector.halfCloseAfterWrite === true;
    const empty = { ...base, backendTranscript: [], ledgerBefore: [], ledgerAfter: [] };
    let answer: Awaited<ReturnType<typeof rawCall>>;
    await runVector(empty, async (place) => {
      const router = await startLocalRouter({ ...place, backends: ["http://10.20.0.11:8787"] });
      answer = await rawCall(router.port, vector.request, { halfClose });
      return router;
    });
    if ("closedWithoutReply" in vector.expect) return expect(answer).toBeUndefined();
    expect(answer?.status).toBe(vector.expect.status);
    expect(JSON.parse(answer?.body ?? "")).toEqual(vector.expect.json);
  });
});
