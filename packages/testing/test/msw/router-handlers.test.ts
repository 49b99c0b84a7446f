import { CallError, CapabilityClient, RouterClient, type RouterClientOptions } from "@cellkit/execution";
import { request as undiciRequest } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { exampleRequest, TestingOptionError, testClientToken, until } from "../../src/index.ts";
import { mockedNetwork, type RouterHandlerOptions, routerHandlers } from "../../src/msw/index.ts";
import { failureOf } from "../support/call.ts";
import { tokenFile } from "../support/directory.ts";

const url = "http://router.test:8787";

function mocked(options: Partial<RouterHandlerOptions> = {}) {
  const router = routerHandlers({ url, ...options });
  const network = mockedNetwork(router.handlers);
  onTestFinished(() => network.close());
  return router;
}

async function client(options: Partial<RouterClientOptions> = {}): Promise<RouterClient> {
  return new RouterClient({
    url,
    allowInsecureHttp: true,
    tokenFile: await tokenFile(testClientToken),
    pollMinMs: 1,
    pollMaxMs: 5,
    ...options,
  });
}

const codeOf = async (promise: Promise<unknown>) => {
  const error = await failureOf(promise);
  if (!(error instanceof CallError)) throw error;
  return [error.code, error.sent, error.next, error.status];
};

describe("RouterClient, which is undici, against a mocked router", () => {
  it("submits once, reads the result, the audit, and cancels what is final", async () => {
    const router = mocked();
    const submission = await (await client()).submit(exampleRequest("a"));
    expect(await submission.result()).toMatchObject({ phase: "Succeeded", output: "ok" });
    expect((await submission.audit()).requestId).toBe("a");
    expect(await submission.cancel()).toMatchObject({ phase: "Succeeded" });
    await submission.send();
    expect(router.runs).toEqual(new Map([["a", 1]]));
    expect(router.calls[0]).toMatchObject({ call: "submit", id: "a", method: "POST", status: 202 });
  });

  it("over https, with a path prefix, too", async () => {
    const router = mocked({ url: "https://edge.test/plane/" });
    const secure = await client({ url: "https://edge.test/plane", allowInsecureHttp: false });
    expect(await (await secure.submit(exampleRequest("a"))).result()).toMatchObject({ phase: "Succeeded" });
    expect(router.calls[0]?.path).toBe("/v1/executions");
  });

  it("a held execution goes on until it is finished or cancelled", async () => {
    const router = mocked({ run: "hold" });
    const calls = await client();
    const first = await calls.submit(exampleRequest("a"));
    await router.finish("a", { kind: "failed", reason: "as told", output: "half" });
    expect(await first.result()).toMatchObject({ phase: "Failed", reason: "as told", output: "half" });
    const second = await calls.submit(exampleRequest("b"));
    expect(await second.cancelUntilTerminal()).toMatchObject({ record: { phase: "Cancelled" } });
  });

  it("the same id with other bytes is a conflict", async () => {
    mocked();
    const calls = await client();
    await calls.submit(exampleRequest("a"));
    const other = calls.submit(exampleRequest("a", { workload: { id: "other", caller: "tests" } }));
    expect((await codeOf(other)).slice(2)).toEqual(["never", 409]);
  });

  it("a lost outcome and a broken connection become reads, and nothing runs twice", async () => {
    const router = mocked();
    const calls = await client();
    router.fault("submit", { kind: "outcome-unknown", ran: true });
    expect(await (await calls.submit(exampleRequest("a"))).result()).toMatchObject({ phase: "Succeeded" });
    router.fault("submit", { kind: "reset", when: "after-accept" });
    expect(await (await calls.submit(exampleRequest("b"))).result()).toMatchObject({ phase: "Succeeded" });
    router.fault("submit", { kind: "reset", when: "before-accept" });
    expect(await (await calls.submit(exampleRequest("c"))).result()).toMatchObject({ phase: "Succeeded" });
    expect(router.runs).toEqual(
      new Map([
        ["a", 1],
        ["b", 1],
        ["c", 1],
      ]),
    );
  });

  it("an outcome that is unknown and did not run stays unknown: the id never runs", async () => {
    const router = mocked();
    router.fault("submit", { kind: "outcome-unknown", ran: false });
    const stop = new AbortController();
    const sending = failureOf((await client()).prepare(exampleRequest("a")).send({ signal: stop.signal }));
    await until("its tries", () => router.calls.length >= 3);
    stop.abort();
    expect(await sending).toMatchObject({ sent: "maybe" });
    expect(router.runs.size).toBe(0);
  });

  it("a fault claims an id for its own submission alone", async () => {
    const router = mocked();
    const calls = await client();
    router.fault({ call: "submit", id: "a" }, { kind: "outcome-unknown", ran: false }, { times: 2 });
    const stop = new AbortController();
    const sending = failureOf(calls.submit(exampleRequest("a"), { signal: stop.signal }));
    await until("its answer", () => router.calls[0]?.status === 503);
    stop.abort();
    await sending;
    const other = exampleRequest("a", { workload: { id: "other", caller: "tests" } });
    expect((await codeOf(calls.submit(other))).slice(2)).toEqual(["never", 409]);
    router.fault("read", { kind: "ownership-unavailable" });
    const headers = { authorization: `Bearer ${testClientToken}` };
    const answer = await undiciRequest(`${url}/v1/executions/b`, { headers });
    expect(await answer.body.json()).toEqual({ error: "execution ownership unavailable" });
    await calls.submit(exampleRequest("b"));
    expect(router.runs).toEqual(new Map([["b", 1]]));
  });

  it.each([
    ["read", { kind: "at-capacity" }],
    ["cancel", { kind: "outcome-unknown", ran: false }],
    ["submit", { kind: "owner-lost" }],
    ["prewarm", { kind: "ownership-unavailable" }],
    ["capabilities", { kind: "other-id" }],
    ["health", { kind: "black-hole" }],
  ] as const)("a fault that makes no sense is refused: %s, %j", (call, fault) => {
    const router = routerHandlers({ url });
    expect(() => router.fault(call, fault)).toThrow(TestingOptionError);
  });

  it("a node at capacity uses the id up", async () => {
    const router = mocked({ run: "hold", backends: [{ maxCells: 1 }, { reachable: false }] });
    router.fault({ call: "submit", id: "b" }, { kind: "at-capacity" });
    await (await client()).submit(exampleRequest("a"));
    await failureOf((await client({ submitTimeoutMs: 200 })).submit(exampleRequest("b")));
    expect(router.runs).toEqual(new Map([["a", 1]]));
  });

  it("an owner that is gone or has forgotten is told, not replaced", async () => {
    const router = mocked();
    const calls = await client();
    await (await calls.submit(exampleRequest("a"))).result();
    router.fault("read", { kind: "owner-lost" });
    expect((await codeOf(calls.get("a")))[3]).toBe(503);
    expect(await calls.get("a")).toMatchObject({ phase: "Succeeded" });
    await router.forget(0);
    expect((await codeOf(calls.get("a"))).slice(1)).toEqual(["maybe", "operator", 503]);
    router.change(0, { reachable: false });
    expect((await codeOf(calls.audit("a")))[3]).toBe(503);
    expect((await codeOf(calls.get("never")))[3]).toBe(404);
  });

  it("pins are followed, and only where they are known", async () => {
    const router = mocked({ backends: [{}, {}] });
    const calls = await client();
    const pin = router.origins[1] ?? "";
    await calls.submit(exampleRequest("a"), { pin });
    expect((await codeOf(calls.submit(exampleRequest("a"), { pin: router.origins[0] ?? "" })))[3]).toBe(409);
    expect((await codeOf(calls.submit(exampleRequest("b"), { pin: "http://elsewhere:1" })))[3]).toBe(400);
    expect(await calls.prewarm(exampleRequest("c"), pin)).toMatchObject({ executionAuthorized: false });
    router.change(1, { reachable: false });
    expect((await codeOf(calls.prewarm(exampleRequest("c"), pin)))[3]).toBe(503);
  });

  it("a black hole ends with the caller's deadline; late, held and lying answers come as they are told", async () => {
    const router = mocked();
    const calls = await client();
    router.fault("read", { kind: "black-hole" });
    // On a busy machine a call's time may be over before it is made.
    const brief = await client({ callTimeoutMs: 100 });
    while (router.calls.length === 0) await failureOf(brief.get("a"));
    expect(router.calls).toMatchObject([{ call: "read", status: undefined }]);
    await calls.submit(exampleRequest("a"));
    router.fault("read", { kind: "late", delayMs: 20 });
    router.fault("read", { kind: "held", until: Promise.reject(new TypeError("the test's own")) });
    router.fault("read", { kind: "other-id" });
    router.fault("read", { kind: "answer", status: 500, body: {} });
    router.fault("submit", { kind: "ownership-unavailable" });
    expect(await calls.get("a")).toMatchObject({ requestId: "a" });
    expect(await calls.get("a")).toMatchObject({ requestId: "a" });
    await failureOf(calls.get("a"));
    expect((await codeOf(calls.get("a")))[3]).toBe(500);
    await calls.submit(exampleRequest("b"));
    expect(router.calls.filter(({ id }) => id === "b").map(({ status }) => status)).toEqual([503, 202]);
  });

  it("no backend that could take it: nothing is claimed, and it works once there is one", async () => {
    const router = mocked({ backends: [{ kvm: false }] });
    const submission = (await client()).prepare(exampleRequest("a"));
    const sent = submission.send();
    router.change(0, { kvm: true });
    expect((await sent).requestId).toBe("a");
    expect(router.runs.get("a")).toBe(1);
  });
});

describe("CapabilityClient against a mocked router", () => {
  const capabilityToken = "discovery-token-for-tests-only";

  it.each([
    ["ready", [{}, { reachable: false }], capabilityToken],
    ["no_capacity", [{ maxCells: 0 }], capabilityToken],
    ["no_capacity", [{ reachable: false }], testClientToken],
    ["not_approved", [{}], "another-token-for-tests-only"],
  ])("%s", async (state, backends, token) => {
    mocked({ capabilityToken, backends });
    const probe = new CapabilityClient({ url, allowInsecureHttp: true, tokenFile: await tokenFile(token) });
    expect((await probe.probe()).state).toBe(state);
  });

  it.each(["/v1/cells", "/v1/cells?all=true"])("its token learns that %s is not served", async (path) => {
    mocked({ capabilityToken });
    const headers = { authorization: `Bearer ${capabilityToken}` };
    const { statusCode, body } = await undiciRequest(`${url}${path}`, { headers });
    expect([statusCode, await body.json()]).toEqual([404, { error: "not found" }]);
  });

  it("its token opens nothing else", async () => {
    mocked({ capabilityToken });
    const calls = await client({ tokenFile: await tokenFile(capabilityToken) });
    expect((await codeOf(calls.get("a")))[3]).toBe(401);
  });
});

describe("what a router refuses before it looks at its ledger", () => {
  const authorization = `bEARER ${testClientToken}`;
  it.each([
    ["GET", "/v1/executions/a", {}, "", 401, "unauthorized"],
    ["GET", "/v1/executions/a?x=1", { authorization }, "", 404, "not found"],
    ["GET", "/v1/health", { authorization }, "", 404, "not found"],
    ["GET", "/v1/executions/a", { authorization: `${authorization.slice(0, -1)}x` }, "", 401, "unauthorized"],
    ["GET", "/", {}, "", 401, "unauthorized"],
    ["GET", "/", { authorization }, "", 404, "not found"],
    ["POST", "/v2/executions", { authorization }, "x", 404, "not found"],
    ["GET", "/v1/executions/a/b", { authorization }, "", 404, "not found"],
    ["GET", "/v1/executions/a", { prefer: "wait=5" }, "", 400, "unsupported or duplicate preference"],
    [
      "GET",
      "/v1/executions/a",
      { authorization, prefer: ["respond-async", "respond-async"] },
      "",
      400,
      "unsupported or duplicate preference",
    ],
    ["GET", "/v1/executions/a", { authorization, prefer: "respond-async" }, "", 404, "unknown execution"],
    ["GET", "/v1/cells", { authorization }, "", 404, "not found"],
    ["GET", "/v1/parents/x", { authorization }, "", 503, "parent routing is not configured"],
    ["POST", "/v1/scoped/start", { authorization }, "", 404, "scoped receiver disabled"],
    ["POST", "/v1/executions/a/cancel", { authorization }, "x", 400, "cancel body must be empty"],
    ["POST", "/v1/executions", { authorization }, "", 413, "request body exceeds 64 KiB or is empty"],
    ["POST", "/v1/executions", { authorization }, '{"id":"a/b"}', 400, "id must be a nonempty ASCII"],
    ["POST", "/v1/executions", { authorization }, "{", 400, "id must be a nonempty ASCII"],
    [
      "POST",
      "/v1/artifacts/prewarm",
      { authorization },
      "{}",
      400,
      "prewarm requires an explicit backend pin",
    ],
    [
      "POST",
      "/v1/artifacts/prewarm",
      { authorization, "x-celln-backend": "http://node-0.test:8787" },
      "",
      413,
      "prewarm body",
    ],
    [
      "GET",
      "/v1/executions/a",
      { authorization, "x-celln-backend": "http://node-0.test:8787" },
      "",
      400,
      "backend pin only applies",
    ],
  ])("%s %s %j %s: %i %s", async (method, path, headers, body, status, error) => {
    mocked();
    const answer = await undiciRequest(`${url}${path}`, {
      method,
      headers: headers as Record<string, string | string[]>,
      body: body === "" ? null : body,
    });
    expect(answer.statusCode).toBe(status);
    expect(((await answer.body.json()) as { error: string }).error).toContain(error);
  });
});

it.each([
  ["url", { url: "router" }],
  ["token", { url, token: "short" }],
  ["capabilityToken", { url, capabilityToken: "short" }],
  ["capabilityToken", { url, capabilityToken: testClientToken }],
])("a wrong %s is refused", (option, options) => {
  expect(() => routerHandlers(options)).toThrow(TestingOptionError);
  expect(() => routerHandlers(options)).toThrow(option);
});

it("a backend that is not there cannot be changed", () => {
  expect(() => routerHandlers({ url }).change(1, {})).toThrow(TestingOptionError);
});
