import { expect, test } from "vitest";
import { answers } from "../../src/core/answer-table.ts";
import { classifyAnswer } from "../../src/core/classify-answer.ts";
import type { Purpose } from "../../src/core/trouble.ts";
import { vectors } from "../support/vectors.ts";

const classify = (status: number, body: string, purpose: Purpose = "submit") =>
  classifyAnswer(status, new TextEncoder().encode(body), purpose);

/** Who may do what after each answer: as the protocol's tables tell it, written down once more. */
const expected: Readonly<Record<string, string>> = {
  "400 backend pin is not configured": "PIN_UNKNOWN no never",
  "400 id must be a nonempty ASCII alphanumeric, dash, underscore or dot path component":
    "ID_REFUSED no never",
  "400 malformed request line": "MALFORMED_CALL no never",
  "400 prewarm requires an explicit backend pin": "PIN_MISPLACED no never",
  "401 unauthorized": "UNAUTHORIZED maybe same-id",
  "404 not found": "ROUTE_UNKNOWN no never",
  "404 unknown execution": "UNKNOWN_EXECUTION no same-id",
  "404 unknown execution audit": "NO_AUDIT yes same-id",
  "409 execution already binds a different backend; no reroute": "PIN_CONFLICT maybe never",
  "409 execution id already binds different request bytes": "ID_CONFLICT no never",
  "409 execution id already bound to different request bytes": "DISPATCHER_CONFLICT yes operator",
  "413 request body exceeds 64 KiB": "REQUEST_REFUSED yes never",
  "413 request body exceeds 64 KiB or is empty": "BODY_SIZE no never",
  "422 prewarm admission refused": "PREWARM_REFUSED yes never",
  "422 sealed prewarm verification refused": "PREWARM_REFUSED yes never",
  "502 parent outcome uncertain; reconcile original owner": "PARENT_UNCERTAIN maybe operator",
  "502 scoped outcome uncertain; retry the same request": "SCOPED_UNCERTAIN maybe same-id",
  "503 capability probe unavailable": "PROBE_BUSY no same-id",
  "503 durable admission unavailable; retry same id": "ADMISSION_UNAVAILABLE yes same-id",
  "503 execution journal unavailable; do not replay": "JOURNAL_UNAVAILABLE maybe operator",
  "503 dispatcher credential unavailable": "DISPATCHER_CREDENTIALS maybe same-id",
  "503 execution ownership unavailable": "OWNERSHIP_UNREADABLE maybe same-id",
  "503 execution worker unavailable": "WORKER_UNAVAILABLE yes same-id",
  "503 interrupted execution requires operator reconciliation; teardown is unproven; do not replay":
    "INTERRUPTED yes operator",
  "503 node at capacity": "AT_CAPACITY yes never",
  "503 ownership capacity exhausted; operator reconciliation required": "LEDGER_FULL no operator",
  "503 ownership unavailable; retry same request without changing id": "OWNERSHIP_UNAVAILABLE no same-id",
  "503 pinned prewarm unavailable; no fallback": "PREWARM_UNAVAILABLE maybe same-id",
  "503 prewarm admission refused": "PREWARM_BUSY yes same-id",
  "503 prewarm already in progress": "PREWARM_BUSY yes same-id",
  "503 recorded owner removed from configured backends; no reroute": "OWNER_REMOVED maybe operator",
  "503 recorded owner unavailable or outcome lost; no reroute or replay": "OWNER_LOST maybe operator",
  "503 router credentials unavailable": "ROUTER_CREDENTIALS no same-id",
  "503 submission outcome unknown; owner retained; POST will not be replayed":
    "OUTCOME_UNKNOWN maybe same-id",
  "503 terminal record not durable; do not replay": "NOT_DURABLE yes same-id",
};

/** A submission, but for what is said of reads alone. */
const purposeOf = (status: number): Purpose => (status === 404 ? "result" : "submit");

test.each(Object.entries(expected))("%s", (answer, meaning) => {
  const status = Number(answer.slice(0, 3));
  const trouble = classify(status, JSON.stringify({ error: answer.slice(4) }), purposeOf(status));
  expect(`${trouble.code} ${trouble.sent} ${trouble.next}`).toBe(`CELLKIT_EXECUTION_${meaning}`);
  expect(trouble).toMatchObject({ status, routerText: answer.slice(4) });
});

const rows = Object.entries(answers).flatMap(([name, { texts }]) =>
  Object.entries<readonly string[]>(texts).flatMap(([status, known]) =>
    known.map((text) => [name, Number(status), text] as const),
  ),
);

test("every text with a status has one meaning", () => {
  const keys = rows.map(([, status, text]) => `${status} ${text}`);
  expect(new Set(keys).size).toBe(keys.length);
});

test.each(rows)("%s is found by %i %s", (name, status, text) => {
  const { code } = classify(status, JSON.stringify({ error: text }), purposeOf(status));
  expect(code).toBe(`CELLKIT_EXECUTION_${name}`);
});

const refusals = vectors.http.flatMap(({ name, expect: reply }) =>
  reply == null || reply.status < 300 ? [] : [{ name, status: reply.status, json: reply.json }],
);

test.each(refusals)("vector: $name has a text of the table", ({ status, json }) => {
  const { code, what } = classify(status, JSON.stringify(json), purposeOf(status));
  expect(code).not.toMatch(/UNEXPECTED|GATEWAY/);
  expect(what).toContain('"');
});

const submissions = vectors.http.flatMap(({ name, request, backendTranscript, expect: reply }) => {
  if (request.method !== "POST" || request.path !== "/v1/executions" || reply == null) return [];
  const posted = backendTranscript.some(({ method, path }) => method === "POST" && path === "/v1/executions");
  return reply.status < 300 ? [] : [{ name, posted, status: reply.status, json: reply.json }];
});

test("there are vectors of refused submissions, posted and not", () => {
  expect(new Set(submissions.map(({ posted }) => posted))).toEqual(new Set([true, false]));
});

test.each(submissions)(
  "vector: $name: what was posted is never told as not sent",
  ({ posted, status, json }) => {
    const { sent } = classify(status, JSON.stringify(json));
    if (posted) expect(sent).not.toBe("no");
    else expect(sent).not.toBe("yes");
  },
);

test.each<[number, string, string]>([
  [400, "malformed request", "MALFORMED_CALL no never"],
  [404, "configured protocol route required", "ROUTE_UNKNOWN no never"],
  [408, "request did not arrive in time", "EDGE_REFUSED no same-id"],
  [413, "parent request too large", "BODY_SIZE no never"],
  [413, "invalid or oversized parent request", "BODY_SIZE no never"],
  [417, "unsupported expectation", "MALFORMED_CALL no never"],
  [431, "request head too large", "MALFORMED_CALL no never"],
  [502, "parent owner unavailable; reconcile original identity", "GATEWAY maybe same-id"],
  [503, "too many connections", "EDGE_REFUSED no same-id"],
])("an edge's own %i %s is known, as text and as JSON", (status, text, meaning) => {
  for (const body of [`${text}\n`, `${JSON.stringify({ error: text })}\n`]) {
    const trouble = classify(status, body);
    expect(`${trouble.code} ${trouble.sent} ${trouble.next}`).toBe(`CELLKIT_EXECUTION_${meaning}`);
    expect(trouble.what).toContain(text);
  }
});

test.each<[number, string, string]>([
  [302, "", "REDIRECTED maybe same-id"],
  [400, '{"error":"missing field `id` at line 1"}', "REQUEST_REFUSED yes never"],
  [400, "", "UNEXPECTED_ANSWER maybe operator"],
  [400, "<html>", "UNEXPECTED_ANSWER maybe operator"],
  [400, "Bad Request", "UNEXPECTED_ANSWER maybe operator"],
  [400, '{"message":"bad request"}', "UNEXPECTED_ANSWER maybe operator"],
  [422, "<html>", "UNEXPECTED_ANSWER maybe operator"],
  [401, "<html>", "UNAUTHORIZED maybe same-id"],
  [403, "blocked", "UNAUTHORIZED maybe same-id"],
  [404, "<html>", "UNEXPECTED_ANSWER maybe operator"],
  [404, '{"error":"mote not found"}', "UNEXPECTED_ANSWER maybe operator"],
  [413, "<html>", "UNEXPECTED_ANSWER maybe operator"],
  [408, "<html>", "UNEXPECTED_ANSWER maybe operator"],
  [409, '{"error":"something else"}', "UNEXPECTED_ANSWER maybe operator"],
  [422, '{"error":"no such member"}', "REQUEST_REFUSED yes never"],
  [500, "", "GATEWAY maybe same-id"],
  [503, '{"error":"a text of tomorrow"}', "GATEWAY maybe same-id"],
  [503, "ownership unavailable", "GATEWAY maybe same-id"],
  [418, "", "UNEXPECTED_ANSWER maybe operator"],
  [204, "", "UNEXPECTED_ANSWER maybe operator"],
])("%i %s is told by its status", (status, body, meaning) => {
  const trouble = classify(status, body);
  expect(`${trouble.code} ${trouble.sent} ${trouble.next}`).toBe(`CELLKIT_EXECUTION_${meaning}`);
});

test.each<[number, string]>([
  [400, "invalid execution request"],
  [400, "missing field `id` at line 1"],
  [400, "id must be a nonempty ASCII alphanumeric, dash, underscore or dot path component"],
  [403, "egress policy refused execution request"],
  [409, "execution id already binds different request bytes"],
  [413, "request body exceeds 64 KiB"],
  [422, "request refused"],
  [422, "no such member"],
  [503, "node at capacity"],
])("a read or a cancellation is not refused by %i %s: no id is given up for that", (status, text) => {
  for (const purpose of ["result", "cancel"] as const) {
    const { code, next, advice } = classify(status, JSON.stringify({ error: text }), purpose);
    expect([code, next]).toEqual(["CELLKIT_EXECUTION_UNEXPECTED_ANSWER", "operator"]);
    expect(advice).not.toMatch(/new id|executionId/);
  }
});

test.each<[number, string, string]>([
  [400, "invalid prewarm request", "PREWARM_REFUSED yes never"],
  [400, "missing field `id` at line 1", "PREWARM_REFUSED yes never"],
  [422, "the mote is not sealed", "PREWARM_REFUSED yes never"],
  [422, "request refused", "PREWARM_REFUSED yes never"],
  [503, "node at capacity", "PREWARM_BUSY yes same-id"],
  [503, "verified template no longer observable in serving cache", "PREWARM_BUSY yes same-id"],
  [503, "pinned prewarm unavailable; no fallback", "PREWARM_UNAVAILABLE maybe same-id"],
])("a prewarm that is answered %i %s uses up no id", (status, text, meaning) => {
  const { code, sent, next, advice } = classify(status, JSON.stringify({ error: text }), "prewarm");
  expect(`${code} ${sent} ${next}`).toBe(`CELLKIT_EXECUTION_${meaning}`);
  expect(advice).not.toMatch(/is used up|new id/);
});

test.each<[Purpose, string, string]>([
  ["submit", "unknown execution", "OWNER_LOST maybe operator"],
  ["submit", "not found", "UNEXPECTED_ANSWER maybe operator"],
  ["submit", "configured protocol route required", "ROUTE_UNKNOWN no never"],
  ["prewarm", "unknown execution", "UNEXPECTED_ANSWER maybe operator"],
  ["prewarm", "not found", "ROUTE_UNKNOWN maybe never"],
])(
  "a %s that is answered 404 %s was passed on behind a claim, unless an edge says it",
  (purpose, text, meaning) => {
    const { code, sent, next, advice } = classify(404, JSON.stringify({ error: text }), purpose);
    expect(`${code} ${sent} ${next}`).toBe(`CELLKIT_EXECUTION_${meaning}`);
    expect(advice).not.toMatch(/submit it|has ever claimed/);
  },
);

test("a prewarm that is answered 400 by something else is no dispatcher's refusal", () => {
  expect(classify(400, "<html>", "prewarm").code).toBe("CELLKIT_EXECUTION_UNEXPECTED_ANSWER");
});

test("a refusal's reason, detail and problems are kept, within bounds", () => {
  const problems = Array.from({ length: 100 }, () => ({ code: "c", field: "f", message: "m" }));
  const body = { error: "invalid execution request", problems, reason: "r".repeat(900), detail: 7 };
  const trouble = classify(400, JSON.stringify(body));
  expect(trouble.problems).toHaveLength(64);
  expect(trouble.reason).toHaveLength(200);
  expect(trouble.detail).toBeUndefined();
});

test("words that are not known stay out of the message", () => {
  const trouble = classify(400, '{"error":"unknown field `my-secret`"}');
  expect(trouble.what + trouble.advice).not.toContain("my-secret");
  expect(trouble.routerText).toContain("my-secret");
});
