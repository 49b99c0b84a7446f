// How long calls and courses take, what they are made with, and what is known when they end early.
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { RouterClient } from "../src/index.ts";
import { resolveRouterOptions } from "../src/router-options.ts";
import { failureOf, nobody, patient, quickClient } from "./support/client.ts";
import { inOneTry } from "./support/in-one-try.ts";
import { answer, rawRouter, type Script } from "./support/raw-router.ts";
import { moteRequest, receipt, succeeded } from "./support/requests.ts";

/** For those that take a second. */
const isLong = inject("size") === "long";
const admitted = answer(202, { requestId: "run-1", phase: "Admitting" });

test("times that are not given are those of the README", () => {
  expect(resolveRouterOptions({ url: "https://router", tokenFile: "/t" })).toMatchObject({
    pace: { minMs: 100, maxMs: 5_000 },
    connectTimeoutMs: 5_000,
    callTimeoutMs: 30_000,
    submitTimeoutMs: 60_000,
    resultGraceMs: 30_000,
    cancelTimeoutMs: 60_000,
  });
});

test("a name that begins like loopback is another machine", () => {
  for (const host of ["127.0.0.1.example", "127.example", "localhost.example"])
    expect(() => new RouterClient({ url: `http://${host}`, tokenFile: "/t" })).toThrow("another machine");
});

test.runIf(isLong)(
  "a connection whose TLS does not come about is given up, and nothing was sent",
  async () => {
    await using router = await rawRouter(() => undefined);
    const client = await quickClient(router.url.replace("http:", "https:"), { connectTimeoutMs: 100 });
    expect(await failureOf(client.get("run-1"))).toMatchObject({
      code: "CELLKIT_EXECUTION_UNREACHABLE",
      message: expect.stringContaining("UND_ERR_CONNECT_TIMEOUT"),
    });
  },
);

test("a try that hangs does not take the time of those behind it", async () => {
  await using router = await rawRouter((_, index) => (index === 0 ? undefined : admitted));
  const client = await quickClient(router.url, { callTimeoutMs: 20_000 });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const submitted = client.submit(moteRequest("run-1"));
  await expect.poll(() => router.received.length, { ...patient, interval: 0 }).toBe(1);
  await vi.advanceTimersByTimeAsync(20_000);
  vi.useRealTimers();
  await submitted;
  expect(router.received).toHaveLength(2);
});

test.runIf(isLong)("a last try that hangs has a second and no more", async () => {
  await using router = await rawRouter(() => undefined);
  const error = await failureOf((await quickClient(router.url)).attach("run-1").result({ timeoutMs: 1 }));
  expect(error).toMatchObject({
    code: "CELLKIT_EXECUTION_DEADLINE",
    message: expect.stringContaining("no answer within 1000 ms"),
  });
});

test("single calls that their caller gives up are told as that, with what was sent", async () => {
  await using router = await rawRouter(() => undefined);
  const client = await quickClient(router.url);
  const calls = [
    (signal: AbortSignal) => client.get("run-1", { signal }),
    (signal: AbortSignal) => client.prewarm(moteRequest("run-1"), "http://dispatcher-a:8787", { signal }),
  ];
  for (const [at, call] of calls.entries()) {
    const controller = new AbortController();
    const failure = failureOf(call(controller.signal));
    await expect.poll(() => router.received.length, patient).toBe(at + 1);
    controller.abort();
    expect(await failure).toMatchObject({ code: "CELLKIT_EXECUTION_ABORTED", sent: "maybe" });
  }
});

test("a final record that cannot be believed is no end of a cancellation", async () => {
  const other = { ...succeeded("run-1"), receipt: receipt("run-2") };
  await using router = await rawRouter(() => answer(200, other));
  const client = await quickClient(router.url);
  expect(await failureOf(client.cancelUntilTerminal("run-1"))).toMatchObject({
    code: "CELLKIT_EXECUTION_RECORD_REJECTED",
  });
});

test("an answer of success that is no JSON is told apart from one that is lost", async () => {
  await using router = await rawRouter(() => answer(200, "<html>"));
  expect(await failureOf((await quickClient(router.url)).get("run-1"))).toMatchObject({
    code: "CELLKIT_EXECUTION_ANSWER_UNUSABLE",
    status: 200,
  });
});

test("bytes are those of the moment when they were prepared, and at most 65,536", async () => {
  await using router = await rawRouter(() => admitted);
  const client = await quickClient(router.url);
  const text = JSON.stringify(moteRequest("run-1")).padEnd(65_536);
  const bytes = new TextEncoder().encode(text);
  const submission = client.prepare(bytes);
  bytes.fill(0x20);
  await submission.send();
  expect(router.received[0]?.body).toBe(text);
  expect(() => client.prepare(`${text} `)).toThrow("65537 bytes");
});

test("kept bytes may have been sent before, unless their caller knows better", async () => {
  const client = await quickClient(nobody);
  const sent = async (resumed?: boolean) => {
    const text = JSON.stringify(moteRequest("run-1"));
    const submitted = inOneTry((time) => client.submit(text, { resumed, ...time }));
    return ((await failureOf(submitted)) as { sent: string }).sent;
  };
  expect([await sent(), await sent(true), await sent(false)]).toEqual(["maybe", "maybe", "no"]);
});

test("what a router has accepted stays sent, whatever the next try meets", async () => {
  const script: Script = (_, index, socket) => {
    if (index === 0) return admitted;
    socket.destroy();
    return undefined;
  };
  await using router = await rawRouter(script);
  const submission = (await quickClient(router.url)).prepare(moteRequest("run-1"));
  await submission.send();
  expect(await failureOf(inOneTry((time) => submission.send(time)))).toMatchObject({ sent: "yes" });
});
