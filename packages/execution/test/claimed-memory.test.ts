// What one handle was told, another of the same client knows: an id that was bound is never taken for one that nobody submitted.
import { expect, test } from "vitest";
import type { RouterClient } from "../src/index.ts";
import { failureOf, quickClient } from "./support/client.ts";
import { inOneTry } from "./support/in-one-try.ts";
import { answer, rawRouter, refusal } from "./support/raw-router.ts";
import { moteRequest } from "./support/requests.ts";

const running = answer(200, { requestId: "run-1", phase: "Running" });
const unknown = refusal(404, "unknown execution");
const lostLedger = { code: "CELLKIT_EXECUTION_UNKNOWN_EXECUTION", next: "operator" };

const submit = async (client: RouterClient) => inOneTry((time) => client.submit(moteRequest("run-1"), time));

test.each<[string, string, (client: RouterClient) => Promise<unknown>]>([
  ["a record of its submission", running, submit],
  ["a record that was read", running, (client) => client.get("run-1")],
  ["a cancellation", running, (client) => client.cancel("run-1")],
  [
    "an outcome that is not known",
    refusal(503, "submission outcome unknown; owner retained; POST will not be replayed"),
    submit,
  ],
  [
    "an owner that is away",
    refusal(503, "recorded owner removed from configured backends; no reroute"),
    (client) => client.get("run-1"),
  ],
  ["a conflict with other bytes", refusal(409, "execution id already binds different request bytes"), submit],
  ["a dispatcher that does not know what it was sent", unknown, submit],
])("after %s, every handle knows that the id is bound", async (_, first, call) => {
  await using router = await rawRouter(({ line }, index) => {
    const isFirst = index === 0 || line === "POST /v1/executions HTTP/1.1";
    return isFirst ? first : unknown;
  });
  const client = await quickClient(router.url);
  await call(client).catch(() => undefined);
  expect(await failureOf(client.cancelUntilTerminal("run-1"))).toMatchObject(lostLedger);
  expect(await failureOf(client.get("run-1"))).toMatchObject(lostLedger);
  const { sent } = (await failureOf(client.prepare(moteRequest("run-1")).get())) as { sent: string };
  expect(sent).not.toBe("no");
  // Another id, and a client that was told nothing.
  expect(await client.cancelUntilTerminal("run-2")).toEqual({ kind: "never-submitted" });
  expect(await (await quickClient(router.url)).cancelUntilTerminal("run-1")).toEqual({
    kind: "never-submitted",
  });
});

test.each([
  ["the router does not know it", unknown],
  [
    "there was no room for the claim",
    refusal(503, "ownership unavailable; retry same request without changing id"),
  ],
])("when %s, the id is still nobody's", async (_, first) => {
  await using router = await rawRouter((_, index) => (index === 0 ? first : unknown));
  const client = await quickClient(router.url);
  await client.get("run-1").catch(() => undefined);
  expect(await client.cancelUntilTerminal("run-1")).toEqual({ kind: "never-submitted" });
});

test("what is bound to other bytes is no loss to a submission of these", async () => {
  const conflict = refusal(409, "execution id already binds different request bytes");
  await using router = await rawRouter((_, index) => (index === 0 ? running : conflict));
  const client = await quickClient(router.url);
  await client.get("run-1");
  expect(await failureOf(client.submit(moteRequest("run-1")))).toMatchObject({
    code: "CELLKIT_EXECUTION_ID_CONFLICT",
    sent: "no",
    next: "never",
  });
});
