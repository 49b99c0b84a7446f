import type { Socket } from "node:net";
import { inspect } from "node:util";
import { expect, test, vi } from "vitest";
import type { CallError } from "../src/index.ts";
import { failureOf, nobody, patient, quickClient, token } from "./support/client.ts";
import { inOneTry } from "./support/in-one-try.ts";
import { answer, type RawRouter, rawRouter, refusal, type Script } from "./support/raw-router.ts";
import { moteRequest, receipt, succeeded } from "./support/requests.ts";

const admitted = answer(202, { requestId: "run-1", phase: "Admitting" });
const cut = (_: unknown, __: number, socket: Socket) => {
  socket.destroy();
  return undefined;
};

test.each<[string, Script]>([
  ["closes without a word", cut],
  ["ends in its head", () => "HTTP/1.1 202 OK\r\nContent-Le"],
  [
    "ends in its body",
    () => 'HTTP/1.1 202 OK\r\nContent-Length: 50\r\nConnection: close\r\n\r\n{"requestId":',
  ],
  ["ends in a body without length", () => 'HTTP/1.1 202 OK\r\nConnection: close\r\n\r\n{"requestId":'],
  ["speaks no HTTP", () => "SSH-2.0-OpenSSH_9.2\r\n"],
  ["answers with another execution", () => answer(202, { requestId: "run-2", phase: "Admitting" })],
  ["answers with no JSON", () => answer(200, "<html>")],
  ["answers with a record that is none", () => answer(202, { requestId: "run-1" })],
  ["answers with a member twice", () => answer(202, '{"requestId":"run-2","phase":"A","requestId":"run-1"}')],
  ["answers 502 without a word", () => answer(502, "")],
  ["answers 503 with a text of tomorrow", () => refusal(503, "something new")],
  [
    "answers 503 for an unknown outcome",
    () => refusal(503, "submission outcome unknown; owner retained; POST will not be replayed"),
  ],
])(
  "after a router that %s, a submission may have arrived, and only the same may be sent again",
  async (_, fault) => {
    await using router = await rawRouter(fault);
    const client = await quickClient(router.url);
    const error = await failureOf(inOneTry((time) => client.submit(moteRequest("run-1"), time)));
    expect(error).toMatchObject({ code: "CELLKIT_EXECUTION_DEADLINE", sent: "maybe", next: "same-id" });
    const bodies = new Set(router.received.map(({ line, body }) => `${line} ${body}`));
    expect(bodies.size).toBe(1);
  },
);

test("tries after a lost answer are the same bytes, and the record that comes at last is taken", async () => {
  const script: Script = (request, index, socket) =>
    index < 3 ? cut(request, index, socket) : answer(200, { requestId: "run-1", phase: "Running" });
  await using router = await rawRouter(script);
  await (await quickClient(router.url)).submit(moteRequest("run-1"));
  expect(router.received).toHaveLength(4);
  expect(new Set(router.received.map(({ line, body }) => `${line} ${body}`)).size).toBe(1);
});

test("a call dials once, even where connections are dropped as soon as they stand", async () => {
  await using router = await rawRouter(
    () => undefined,
    undefined,
    (socket) => socket.destroy(),
  );
  expect(await failureOf((await quickClient(router.url)).get("run-1"))).toMatchObject({
    code: "CELLKIT_EXECUTION_ANSWER_LOST",
    sent: "maybe",
  });
  expect(router.connections()).toBe(1);
});

test("a router that nobody runs was sent nothing", async () => {
  const client = await quickClient(nobody);
  expect(await failureOf(inOneTry((time) => client.submit(moteRequest("run-1"), time)))).toMatchObject({
    code: "CELLKIT_EXECUTION_DEADLINE",
    sent: "no",
    next: "same-id",
    cause: { code: "CELLKIT_EXECUTION_UNREACHABLE", message: expect.stringContaining("ECONNREFUSED") },
  });
  // Somebody may have submitted the id: only a submission of this handle knows that nothing was sent.
  expect(await failureOf(client.get("run-1"))).toMatchObject({
    code: "CELLKIT_EXECUTION_UNREACHABLE",
    sent: "maybe",
  });
});

test.each<[number, string, string]>([
  [400, "backend pin is not configured", "PIN_UNKNOWN"],
  [401, "unauthorized", "UNAUTHORIZED"],
  [403, "egress policy refused execution request", "REQUEST_REFUSED"],
  [409, "execution id already binds different request bytes", "ID_CONFLICT"],
  [413, "request body exceeds 64 KiB or is empty", "BODY_SIZE"],
  [503, "node at capacity", "AT_CAPACITY"],
  [503, "ownership capacity exhausted; operator reconciliation required", "LEDGER_FULL"],
])("%i %s ends a submission at once", async (status, text, code) => {
  await using router = await rawRouter(() => refusal(status, text));
  const error = await failureOf((await quickClient(router.url)).submit(moteRequest("run-1")));
  expect(error).toMatchObject({ code: `CELLKIT_EXECUTION_${code}`, status, routerText: text });
  expect(router.received).toHaveLength(1);
});

test("a redirect is not followed, and the token stays here", async () => {
  await using other = await rawRouter(() => admitted);
  const head = `HTTP/1.1 307 OK\r\nLocation: ${other.url}/v1/executions\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
  await using router = await rawRouter(() => head);
  const error = await failureOf((await quickClient(router.url)).submit(moteRequest("run-1")));
  expect(error).toMatchObject({ code: "CELLKIT_EXECUTION_REDIRECTED", status: 307, next: "same-id" });
  expect(other.connections()).toBe(0);
});

test("a record of more than 262,144 bytes is not read to its end", async () => {
  let written = 0;
  await using router = await rawRouter((_, __, socket) => {
    socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    const chunk = Buffer.alloc(65_536, 0x20);
    const more = () => {
      while (socket.write(chunk)) written += chunk.length;
    };
    socket.on("drain", more);
    more();
    return undefined;
  });
  const error = await failureOf((await quickClient(router.url)).get("run-1"));
  expect(error).toMatchObject({
    code: "CELLKIT_EXECUTION_ANSWER_LOST",
    message: expect.stringContaining("262144"),
  });
  expect(written).toBeLessThan(32 * 1024 * 1024);
});

/** What a call fails with when the router has its request, and so much time is over at once. */
async function afterItsTime(router: RawRouter, ms: number, call: () => Promise<unknown>): Promise<unknown> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const failure = failureOf(call());
    await expect.poll(() => router.received.length, { ...patient, interval: 0 }).toBe(1);
    await vi.advanceTimersByTimeAsync(ms);
    return await failure;
  } finally {
    vi.useRealTimers();
  }
}

test("a call to a router that never answers ends with its time", async () => {
  await using router = await rawRouter(() => undefined);
  const client = await quickClient(router.url, { callTimeoutMs: 7_000 });
  const error = await afterItsTime(router, 7_000, () => client.cancel("run-1"));
  expect(error).toMatchObject({
    code: "CELLKIT_EXECUTION_ANSWER_LOST",
    message: expect.stringContaining("7000 ms"),
  });
});

test("a router that gives one byte at a time cannot stretch a call", async () => {
  await using router = await rawRouter((_, __, socket) => {
    const drip = setInterval(() => socket.write("x"), 5);
    socket.on("close", () => clearInterval(drip)).write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    return undefined;
  });
  const client = await quickClient(router.url, { callTimeoutMs: 7_000 });
  expect(await afterItsTime(router, 7_000, () => client.get("run-1"))).toMatchObject({
    code: "CELLKIT_EXECUTION_ANSWER_LOST",
  });
});

test("a caller that gives up is told what was sent", async () => {
  await using router = await rawRouter(() => undefined);
  const client = await quickClient(router.url);
  const early = AbortSignal.abort(new TypeError("no more"));
  expect(await failureOf(client.submit(moteRequest("run-1"), { signal: early }))).toMatchObject({
    code: "CELLKIT_EXECUTION_ABORTED",
    sent: "no",
    cause: new TypeError("no more"),
  });
  const late = new AbortController();
  const submitted = client.submit(moteRequest("run-1"), { signal: late.signal });
  await expect.poll(() => router.received.length, patient).toBe(1);
  late.abort();
  expect(await failureOf(submitted)).toMatchObject({ code: "CELLKIT_EXECUTION_ABORTED", sent: "maybe" });
});

test("a caller that gives up between two polls is told at once", async () => {
  await using router = await rawRouter(() => admitted);
  const client = await quickClient(router.url, { pollMinMs: 60_000, pollMaxMs: 60_000 });
  const controller = new AbortController();
  const result = client.attach("run-1").result({ signal: controller.signal });
  // It has read the answer, and closed.
  await expect.poll(() => [router.received.length, router.open()], patient).toEqual([1, 0]);
  controller.abort();
  expect(await failureOf(result)).toMatchObject({ code: "CELLKIT_EXECUTION_ABORTED", sent: "yes" });
});

test("no error shows the token", async () => {
  await using router = await rawRouter((request, index, socket) => {
    if (index === 0) return refusal(401, "unauthorized");
    return cut(request, index, socket);
  });
  const client = await quickClient(router.url);
  for (const _ of [1, 2]) {
    expect(inspect(await failureOf(client.get("run-1")), { depth: 9, showHidden: true })).not.toContain(
      token,
    );
  }
  expect(inspect(client, { depth: 9, showHidden: true })).not.toContain(token);
});

test("a request that a dispatcher would refuse is not sent", async () => {
  await using router = await rawRouter(() => admitted);
  const client = await quickClient(router.url);
  const { capabilities } = moteRequest("r");
  const zero = moteRequest("run-1", { capabilities: { ...capabilities, memoryBytes: 0, outputBytes: 0n } });
  expect(await failureOf(client.submit(zero))).toMatchObject({
    code: "CELLKIT_EXECUTION_REQUEST",
    problems: [
      { code: "invalid_limit", field: "capabilities.memoryBytes" },
      { code: "invalid_limit", field: "capabilities.outputBytes" },
    ],
  });
  const codes: [unknown, string][] = [
    [moteRequest("a:b"), "ID"],
    [moteRequest(".."), "ID"],
    [{ ...moteRequest("r"), surprise: 1 }, "REQUEST"],
    [moteRequest("r", { workload: { id: "x".repeat(65_536), caller: "c" } }), "REQUEST"],
    [null, "REQUEST"],
    ["", "REQUEST"],
    ["{", "JSON"],
    ['{"id":7}', "REQUEST"],
    ['{"id":"a/b"}', "ID"],
  ];
  for (const [source, code] of codes) {
    const error = await failureOf(client.submit(source as string));
    expect(error).toMatchObject({ code: `CELLKIT_EXECUTION_${code}`, sent: "no", next: "never" });
  }
  for (const pin of ["", "http://a b", "x".repeat(1_025), "http://é"]) {
    expect(await failureOf(client.submit(moteRequest("r"), { pin }))).toMatchObject({
      code: "CELLKIT_EXECUTION_OPTION",
    });
  }
  expect(router.connections()).toBe(0);
});

test("bytes of a version that is not known are sent as they are", async () => {
  const bytes = ' {"apiVersion":"celln.dev/v1beta7", "id":"run-1", "new":{}}\n';
  const newer = { ...succeeded("run-1"), receipt: receipt("run-1", { apiVersion: "celln.dev/v1beta7" }) };
  const answers = [admitted, answer(200, newer), answer(200, succeeded("run-1"))];
  await using router = await rawRouter((_, index) => answers[index]);
  const submission = await (await quickClient(router.url)).submit(bytes);
  expect(router.received[0]?.body).toBe(bytes);
  expect(await submission.result()).toMatchObject({ receipt: { apiVersion: "celln.dev/v1beta7" } });
  // All that is known of such a request is its version: a receipt of another one is not of these bytes.
  expect(await failureOf(submission.result())).toMatchObject({
    code: "CELLKIT_EXECUTION_RECORD_REJECTED",
    faults: ["its receipt has another version than the request"],
  });
});

test.each([
  ["<html><h1>400 Bad Request</h1></html>", "UNEXPECTED_ANSWER maybe operator"],
  ['{"error":"bad request"}', "REQUEST_REFUSED yes never"],
])("a first submission that is answered 400 %s", async (body, end) => {
  await using router = await rawRouter(() => answer(400, body));
  const error = await failureOf((await quickClient(router.url)).submit(moteRequest("run-1")));
  expect(ended(error)).toBe(end);
});

test("a proxy's 400 gives up no id once something may run under it", async () => {
  const refusals = [answer(400, '{"error":"bad request"}'), answer(400, "<html>"), answer(422, "")];
  for (const refused of refusals) {
    await using router = await rawRouter((request, index, socket) =>
      index === 0 ? cut(request, index, socket) : refused,
    );
    const client = await quickClient(router.url);
    expect(ended(await failureOf(client.submit(moteRequest("run-1"))))).toBe(
      "UNEXPECTED_ANSWER maybe operator",
    );
    await using running = await rawRouter((_, index) => (index === 0 ? admitted : refused));
    const submission = await (await quickClient(running.url)).submit(moteRequest("run-1"));
    for (const call of [
      () => submission.get(),
      () => submission.result(),
      () => submission.cancel(),
      () => submission.cancelUntilTerminal(),
      () => submission.send(),
    ]) {
      expect(ended(await failureOf(call()))).toBe("UNEXPECTED_ANSWER yes operator");
    }
  }
});

test("an id that a router had bound, and that is new to it now, is for an operator", async () => {
  await using router = await rawRouter((_, index) =>
    index === 0
      ? refusal(503, "submission outcome unknown; owner retained; POST will not be replayed")
      : answer(503, { error: "node at capacity", reason: "at_capacity" }),
  );
  const error = await failureOf((await quickClient(router.url)).submit(moteRequest("run-1")));
  expect(error).toMatchObject({
    code: "CELLKIT_EXECUTION_AT_CAPACITY",
    sent: "yes",
    next: "operator",
    reason: "at_capacity",
    message: expect.stringContaining("nothing may be submitted again"),
  });
});

test.each<[number, string, string]>([
  [422, "sealed prewarm verification refused", "PREWARM_REFUSED yes never"],
  [422, "the mote has another image", "PREWARM_REFUSED yes never"],
  [503, "prewarm already in progress", "PREWARM_BUSY yes same-id"],
  [503, "pinned prewarm unavailable; no fallback", "PREWARM_UNAVAILABLE maybe same-id"],
])("a prewarm that ends with %i %s says nothing of its id", async (status, text, end) => {
  await using router = await rawRouter(() => refusal(status, text));
  const client = await quickClient(router.url);
  const error = await failureOf(client.prewarm(moteRequest("run-1"), "http://dispatcher-a:8787"));
  expect(ended(error)).toBe(end);
  expect(String(error)).not.toMatch(/is used up|new id/);
  expect(router.received).toHaveLength(1);
});

/** The end of a call in three words. */
function ended(error: unknown): string {
  const { code, sent, next } = error as CallError;
  return `${code.replace("CELLKIT_EXECUTION_", "")} ${sent} ${next}`;
}
