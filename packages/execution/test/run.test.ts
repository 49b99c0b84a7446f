import { expect, test } from "vitest";
import { heldClock } from "../../../tools/test-support/held-clock.ts";
import type { RouterClient } from "../src/index.ts";
import { failureOf, patient, quickClient } from "./support/client.ts";
import { inOneTry } from "./support/in-one-try.ts";
import { answer, type RawRouter, rawRouter, refusal } from "./support/raw-router.ts";
import { moteRequest, receipt, succeeded } from "./support/requests.ts";

const running = answer(200, { requestId: "run-1", phase: "Running" });
const cancelling = answer(202, { requestId: "run-1", phase: "Cancelling" });
const unknown = refusal(404, "unknown execution");

test("a caller that was started anew attaches to the run by its id", async () => {
  const answers = [
    running,
    refusal(503, "recorded owner unavailable or outcome lost; no reroute or replay"),
    refusal(401, "unauthorized"),
    answer(200, succeeded("run-1")),
  ];
  await using router = await rawRouter((_, index) => answers[index]);
  const record = await (await quickClient(router.url)).attach("run-1").result();
  expect(record).toMatchObject({ phase: "Succeeded", output: "hello\n" });
  expect(router.received.every(({ line }) => line.startsWith("GET "))).toBe(true);
});

test("several callers may wait for one run", async () => {
  await using router = await rawRouter((_, index) => (index < 6 ? running : answer(200, succeeded("run-1"))));
  const client = await quickClient(router.url);
  const records = await Promise.all([1, 2, 3].map(() => client.attach("run-1").result()));
  expect(records.map(({ phase }) => phase)).toEqual(["Succeeded", "Succeeded", "Succeeded"]);
});

test("a final record that does not fit the request is not handed out", async () => {
  const other = { ...succeeded("run-1"), receipt: receipt("run-1", { apiVersion: "celln.dev/v1alpha3" }) };
  await using router = await rawRouter(() => answer(200, other));
  const client = await quickClient(router.url);
  const submission = await client.submit(moteRequest("run-1"));
  expect(await failureOf(submission.result())).toMatchObject({
    code: "CELLKIT_EXECUTION_RECORD_REJECTED",
    next: "operator",
    faults: ["its receipt has another version than the request"],
  });
  // Without the request there is nothing to compare with; what a record says of itself is still checked.
  expect((await client.attach("run-1").result()).phase).toBe("Succeeded");
});

test("a run that fails or is refused is a result, not an error", async () => {
  await using router = await rawRouter(() =>
    answer(200, { requestId: "run-1", phase: "Refused", reason: "policy" }),
  );
  expect(await (await quickClient(router.url)).attach("run-1").result()).toMatchObject({ phase: "Refused" });
});

test("waiting ends with its time, and says that the run goes on", async () => {
  await using router = await rawRouter(() => running);
  const run = (await quickClient(router.url)).attach("run-1");
  const clock = heldClock();
  const failure = failureOf(run.result({ timeoutMs: 30_000 }));
  await goesOn(router);
  clock.ms += 30_000;
  expect(await failure).toMatchObject({ code: "CELLKIT_EXECUTION_DEADLINE", sent: "yes", next: "same-id" });
});

test("what the owner lost is left to an operator when time is up", async () => {
  await using router = await rawRouter(() =>
    refusal(503, "recorded owner removed from configured backends; no reroute"),
  );
  const run = (await quickClient(router.url)).attach("run-1");
  const error = await failureOf(inOneTry((time) => run.result(time)));
  expect(error).toMatchObject({ next: "operator", cause: { code: "CELLKIT_EXECUTION_OWNER_REMOVED" } });
});

test("an id that no router knows may be submitted", async () => {
  await using router = await rawRouter(() => unknown);
  const run = (await quickClient(router.url)).attach("run-1");
  for (const call of [() => run.get(), () => run.audit(), () => run.cancel(), () => run.result()]) {
    expect(await failureOf(call())).toMatchObject({
      code: "CELLKIT_EXECUTION_UNKNOWN_EXECUTION",
      sent: "no",
      next: "same-id",
    });
  }
});

test("a dispatcher that has a run and no audit of it says so", async () => {
  await using router = await rawRouter(() => refusal(404, "unknown execution audit"));
  expect(await failureOf((await quickClient(router.url)).audit("run-1"))).toMatchObject({
    code: "CELLKIT_EXECUTION_NO_AUDIT",
    sent: "yes",
    next: "same-id",
  });
});

/** Two more tries come: nothing has ended. */
async function goesOn(router: RawRouter): Promise<void> {
  const before = router.received.length;
  await expect.poll(() => router.received.length, patient).toBeGreaterThan(before + 1);
}

test.each<[string, number, (client: RouterClient) => Promise<unknown>]>([
  [
    "a run may take what its request allows, and the grace of the options",
    50_000 + 7_000,
    (client) => {
      const { capabilities } = moteRequest("run-1");
      const request = moteRequest("run-1", { capabilities: { ...capabilities, timeoutMs: 50_000 } });
      return client.prepare(request).result();
    },
  ],
  ["one of which nothing says how long, 90 s", 90_000 + 7_000, (client) => client.attach("run-1").result()],
  [
    "a cancellation goes on for as long as the options say",
    9_000,
    (client) => client.cancelUntilTerminal("run-1"),
  ],
])("%s", async (_, timeMs, wait) => {
  await using router = await rawRouter(({ line }) => (line.startsWith("GET ") ? running : cancelling));
  const client = await quickClient(router.url, { resultGraceMs: 7_000, cancelTimeoutMs: 9_000 });
  const clock = heldClock();
  const failure = failureOf(wait(client));
  await goesOn(router);
  clock.ms += timeMs - 1;
  await goesOn(router);
  clock.ms += 1;
  expect(await failure).toMatchObject({ code: "CELLKIT_EXECUTION_DEADLINE" });
});

test("an id that a router knew and does not know any more must not be", async () => {
  await using router = await rawRouter((_, index) => (index === 0 ? cancelling : unknown));
  const run = (await quickClient(router.url)).attach("run-1");
  await run.cancel();
  for (const call of [() => run.get(), () => run.result(), () => run.cancelUntilTerminal()]) {
    expect(await failureOf(call())).toMatchObject({
      code: "CELLKIT_EXECUTION_UNKNOWN_EXECUTION",
      sent: "yes",
      next: "operator",
    });
  }
});

test("a cancellation is repeated until the record is final", async () => {
  const answers = [
    cancelling,
    refusal(503, "execution ownership unavailable"),
    cancelling,
    answer(200, { requestId: "run-1", phase: "Cancelled" }),
  ];
  await using router = await rawRouter((_, index) => answers[index]);
  const end = await (await quickClient(router.url)).cancelUntilTerminal("run-1");
  expect(end).toMatchObject({ kind: "terminal", record: { phase: "Cancelled" } });
  expect(router.received.every(({ line }) => line === "POST /v1/executions/run-1/cancel HTTP/1.1")).toBe(
    true,
  );
});

test("there is nothing to cancel where no router knows the id", async () => {
  await using router = await rawRouter(() => unknown);
  expect(await (await quickClient(router.url)).cancelUntilTerminal("run-1")).toEqual({
    kind: "never-submitted",
  });
});

test("a cancellation whose work is not taken down in time is no success", async () => {
  await using router = await rawRouter(() => cancelling);
  const client = await quickClient(router.url);
  expect(await failureOf(inOneTry((time) => client.cancelUntilTerminal("run-1", time)))).toMatchObject({
    code: "CELLKIT_EXECUTION_DEADLINE",
    sent: "yes",
  });
});

test.each(["", ".", "..", "a/b", "a:b", "a%2fb", "é", "x".repeat(513)])(
  "%j is refused before a call",
  async (id) => {
    const client = await quickClient("http://127.0.0.1:9");
    expect(() => client.attach(id)).toThrow("executionId()");
    for (const call of [
      client.get(id),
      client.audit(id),
      client.cancel(id),
      client.cancelUntilTerminal(id),
    ]) {
      expect(await failureOf(call)).toMatchObject({ code: "CELLKIT_EXECUTION_ID" });
    }
  },
);

test.each([0, 0.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])(
  "a time of %f ms is refused",
  async (timeoutMs) => {
    const client = await quickClient("http://127.0.0.1:9");
    expect(await failureOf(client.attach("r").result({ timeoutMs }))).toMatchObject({
      code: "CELLKIT_EXECUTION_OPTION",
    });
    expect(await failureOf(quickClient("http://127.0.0.1:9", { callTimeoutMs: timeoutMs }))).toMatchObject({
      code: "CELLKIT_EXECUTION_OPTION",
    });
  },
);
