// Which cases of the specification's vectors concern this router, and what is expected of it.
import { expect } from "vitest";
import type { RawAnswer } from "./raw-call.ts";
import type { VectorResult } from "./vector-run.ts";
import { type HttpVector, type RawVector, vectors } from "./vectors.ts";

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

/** How a case is answered here, where that is not as it says. */
export function exceptionFor({ name, expect: expected }: HttpVector): (typeof otherwise)[string] | undefined {
  if (name in otherwise) return otherwise[name];
  if (name.startsWith("cells:")) return cells;
  if (name.startsWith("parents:"))
    return JSON.stringify(expected).includes(parents.error) ? undefined : parents;
  return name.startsWith("scoped:") && name !== "scoped: disabled" ? scoped : undefined;
}

/** The cases that are kept as they are. */
export const cases = vectors.http.filter((vector) => exceptionFor(vector) === undefined);
/** The others. */
export const exceptions = vectors.http.filter((vector) => exceptionFor(vector) !== undefined);

/** Requests as bytes. */
export const rawCases = vectors.raw.map((vector) => [vector.name, vector] as const);

/** A plane without work. */
export const emptyPlane: HttpVector = {
  ...(vectors.http[0] as HttpVector),
  backends: ["http://10.20.0.11:8787"],
  backendTranscript: [],
  ledgerBefore: [],
  ledgerAfter: [],
};

/** The answer, the calls and the ledger are as the case says. */
export function expectVector(vector: HttpVector, result: VectorResult): void {
  const { answer, calls, expectedCalls, files, expectedFiles } = result;
  expect(answer?.status).toBe(vector.expect.status);
  // Owners are chosen before the lock, so a lock that is never had may cost probes whose results are thrown away.
  const isProbe = (call: string) => vector.lockHeldElsewhere === true && call.includes("/v1/health");
  expect(calls.filter((call) => !isProbe(call))).toEqual(expectedCalls);
  expect(files).toEqual(expectedFiles);
  const json = JSON.parse(answer?.body ?? "");
  if (vector.expect.json !== undefined) expect(json).toEqual(vector.expect.json);
  if (vector.expect.jsonSubset !== undefined) expect(json).toMatchObject(vector.expect.jsonSubset);
}

/** The answer is the case's, or there is none. */
export function expectRaw(answer: RawAnswer | undefined, vector: RawVector): void {
  if ("closedWithoutReply" in vector.expect) {
    expect(answer).toBeUndefined();
    return;
  }
  expect(answer?.status).toBe(vector.expect.status);
  expect(JSON.parse(answer?.body ?? "")).toEqual(vector.expect.json);
}
