import { beforeEach, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { holdSocketTimeouts, holdTime } from "./support/held-time.ts";
import { openTestRouter, tokens } from "./support/router.ts";
import { type Answerer, jsonAnswer, ScriptedBackend } from "./support/scripted-backend.ts";
import { vectors } from "./support/vectors.ts";

const report = vectors.http.find(({ name }) => name === "capabilities: two eligible nodes")
  ?.backendTranscript[0]?.reply?.json;
const reporting: Answerer = () => jsonAnswer(200, report);
const discover = (router: {
  read(path: string, token: string): ReturnType<typeof import("./support/raw-call.ts").rawCall>;
}) => router.read("/v1/capabilities", tokens.capability);

// The limits of reports are fixed, and short.
beforeEach(() => {
  holdTime();
  holdSocketTimeouts();
});

it("one dead node does not hide the others: the answer comes in under four seconds", async () => {
  await using alive = await ScriptedBackend.open(reporting);
  await using silent = await ScriptedBackend.open(() => "hang");
  await using dripping = await ScriptedBackend.open((_request, socket) => {
    const timer = setInterval(() => socket.write("H"), 50);
    socket.once("close", () => clearInterval(timer));
    return "hang";
  });
  const origins = [silent.origin, alive.origin, dripping.origin, "http://black-hole.test:1"];
  await using router = await openTestRouter([], {
    backends: { origins: async () => origins },
    // Nothing is ever found of a name.
    lookup: () => undefined,
  });
  const answered = discover(router);
  await until("all calls, and the one report", () => {
    const isAnswered = router.events.some((event) => event.kind === "backend" && event.status === 200);
    return isAnswered && silent.calls.length === 1 && dripping.calls.length === 1;
  });
  vi.advanceTimersByTime(3_999);
  const answer = await answered;
  expect(JSON.parse(answer?.body ?? "")).toMatchObject({
    eligibleNodes: 1,
    nodes: [
      { index: 0, preflightEligible: false },
      { index: 1, preflightEligible: true },
      { index: 2, preflightEligible: false },
      { index: 3, preflightEligible: false },
    ],
  });
  const problems = router.events.flatMap((event) =>
    event.kind === "backend" && event.problem !== undefined ? [[event.backend, event.problem]] : [],
  );
  expect(Object.fromEntries(problems)).toEqual({
    [silent.origin]: expect.stringMatching(/did not answer within 2000 ms/),
    [dripping.origin]: expect.stringMatching(/did not answer within 2000 ms/),
    "http://black-hole.test:1": expect.stringMatching(/did not accept a connection within 1800 ms/),
  });
  expect(alive.requests[0]?.fields).toEqual([
    ["Host", "dispatcher"],
    ["Authorization", `Bearer ${tokens.backend}`],
    ["Connection", "close"],
  ]);
});

it("a slow lookup of dispatchers takes from the time of the reports, so that both stay below four seconds", async () => {
  await using silent = await ScriptedBackend.open(() => "hang");
  await using router = await openTestRouter([], {
    backends: {
      origins: async () => {
        // As long as a lookup is waited for.
        vi.advanceTimersByTime(2_000);
        return [silent.origin];
      },
    },
  });
  const answered = discover(router);
  await until("the call", () => silent.calls.length === 1);
  vi.advanceTimersByTime(1_999);
  expect((await answered)?.status).toBe(200);
  expect(router.events).toContainEqual(
    expect.objectContaining({
      call: "capabilities",
      problem: expect.stringMatching(/not done within 1800 ms/),
    }),
  );
});

it("callers that come meanwhile share the answer, and the next one asks again", async () => {
  const held = Promise.withResolvers<void>();
  await using backend = await ScriptedBackend.open(async () => {
    await held.promise;
    return jsonAnswer(200, report);
  });
  await using router = await openTestRouter([backend]);
  const first = discover(router);
  await until("the first probe", () => backend.calls.length === 1);
  const others = [discover(router), discover(router)];
  await until("three requests", () => router.router.counts().running === 3);
  held.resolve();
  const answers = await Promise.all([first, ...others]);
  expect(new Set(answers.map((answer) => answer?.body)).size).toBe(1);
  expect(backend.calls).toHaveLength(1);
  expect(router.events).toContainEqual(expect.objectContaining({ kind: "capabilities", sharedCount: 2 }));
  await discover(router);
  expect(backend.calls).toHaveLength(2);
});

it("a report of more than 64 KiB is none, and one of exactly as much is", async () => {
  const padded = (bytes: number) => {
    const text = JSON.stringify({ ...(report as object), padding: "" });
    const empty = jsonAnswer(200, text).length;
    // One digit more of the length itself.
    return jsonAnswer(200, text.replace('"padding":""', `"padding":"${"x".repeat(bytes - empty - 2)}"`));
  };
  expect([padded(65_536).length, padded(65_537).length]).toEqual([65_536, 65_537]);
  await using fitting = await ScriptedBackend.open(() => padded(65_536));
  await using large = await ScriptedBackend.open(() => padded(65_537));
  await using router = await openTestRouter([fitting, large]);
  expect(JSON.parse((await discover(router))?.body ?? "")).toMatchObject({
    nodes: [{ preflightEligible: true }, { preflightEligible: false }],
  });
});

it("memory of a node above 2^53 keeps its digits", async () => {
  const text = JSON.stringify(report).replace(/"memory_bytes":\d+/, '"memory_bytes":18446744073709551615');
  await using backend = await ScriptedBackend.open(() => jsonAnswer(200, text));
  await using router = await openTestRouter([backend]);
  expect((await discover(router))?.body).toContain('"memory_bytes":18446744073709551615,');
});
