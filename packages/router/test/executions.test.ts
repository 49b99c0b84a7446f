import type { LookupFunction } from "node:net";
import {
  CorruptRecordError,
  LedgerBusyError,
  LedgerUnavailableError,
  openMemoryLedger,
} from "@cellkit/ledger";
import { describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Dispatchers } from "../src/backend/dispatchers.ts";
import { type Placement, placeByHash } from "../src/placement.ts";
import { defaultLimits } from "../src/router-limits.ts";
import { holdSocketTimeouts, holdTime } from "./support/held-time.ts";
import { rawCall } from "./support/raw-call.ts";
import { bodiless, openTestRouter, patientLimits, submission, tokens } from "./support/router.ts";
import { type Answerer, jsonAnswer, ScriptedBackend, willing } from "./support/scripted-backend.ts";

const uncertain = { error: "submission outcome unknown; owner retained; POST will not be replayed" };
const noOwnership = { error: "ownership unavailable; retry same request without changing id" };
const lost = { error: "recorded owner unavailable or outcome lost; no reroute or replay" };
const json = (answer: { body: string } | undefined) => JSON.parse(answer?.body ?? "null");
const posts = ({ calls }: ScriptedBackend) => calls.filter((call) => call === "POST /v1/executions");

/** Healthy; POSTs are answered by `answer`. */
const posting =
  (answer: Answerer): Answerer =>
  (request, socket) =>
    request.method === "POST" && request.path === "/v1/executions"
      ? answer(request, socket)
      : willing(request, socket);

describe("a submission", () => {
  it("reaches its dispatcher as it came, with the backend token, names with capitals, and nothing of the caller's headers", async () => {
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend]);
    const answer = await router.submit("run-1", "X-Secret: hidden\r\nCookie: hidden\r\n");
    expect(answer?.status).toBe(202);
    expect(backend.calls).toEqual(["GET /v1/health", "POST /v1/executions"]);
    expect(backend.requests[1]?.fields).toEqual([
      ["Host", backend.origin],
      ["Authorization", `Bearer ${tokens.backend}`],
      ["Content-Type", "application/json"],
      ["Content-Length", "25"],
      ["Connection", "close"],
    ]);
    expect(backend.requests[1]?.body.toString()).toBe('{"id":"run-1","task":"x"}');
  });

  it("is answered with the dispatcher's own bytes", async () => {
    const odd = "HTTP/1.0 418 I'm odd\r\nX-Odd: é\r\nx-odd:2\r\n\r\nnot JSON, no length";
    await using backend = await ScriptedBackend.open(posting(() => odd));
    await using router = await openTestRouter([backend]);
    const answer = await rawCall(router.port, submission("run-1"));
    expect(Buffer.from(answer?.text ?? "", "latin1").toString()).toBe(odd);
  });

  it.each<[string, Answerer]>([
    ["the connection is closed", () => undefined],
    ["the connection is reset", (_request, socket) => void socket.resetAndDestroy()],
    ["the head is cut", () => "HTTP/1.1 202 OK\r\nContent-Length: 2\r\n"],
    ["the answer is not UTF-8", () => Buffer.from("HTTP/1.1 202 OK\r\n\r\n\xff", "latin1")],
    ["the answer is too large", () => `HTTP/1.1 202 OK\r\n\r\n${"x".repeat(5_000)}`],
    ["nothing comes", () => "hang"],
    ["the status is none", () => "HTTP/1.1 0202 OK\r\n\r\n{}"],
    ["a line comes before the status", () => "\r\nHTTP/1.1 202 OK\r\n\r\n{}"],
  ])("is uncertain and never sent again when %s", async (fault, answer) => {
    const timeouts = holdSocketTimeouts();
    await using backend = await ScriptedBackend.open(posting(answer));
    await using router = await openTestRouter([backend], {
      limits: { operationMs: 300, answerBytes: 4_096 },
    });
    const answered = router.submit("run-1");
    if (fault === "nothing comes") {
      await until("the POST", () => posts(backend).length === 1);
      timeouts.expire(300);
    }
    const first = await answered;
    expect([first?.status, json(first)]).toEqual([503, uncertain]);
    backend.answer = (request, socket) =>
      request.path === "/v1/executions/run-1"
        ? jsonAnswer(404, { error: "unknown execution" })
        : willing(request, socket);
    const again = await router.submit("run-1");
    expect([again?.status, json(again)]).toEqual([503, lost]);
    expect(posts(backend)).toHaveLength(1);
    expect(router.events).toContainEqual({ kind: "uncertain", backend: backend.origin });
  });

  it("is uncertain when its dispatcher went away behind the claim", async () => {
    const backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend], {
      placement: async ({ backends, health }) => {
        for (const origin of backends) expect((await health(origin)).healthy).toBe(true);
        await backend.close();
        return backends[0];
      },
    });
    expect(json(await router.submit("run-1"))).toEqual(uncertain);
    expect(await router.ledger.lookup("run-1")).toMatchObject({ backend: backend.origin });
  });

  it("of 64 at once with one id has one POST", async () => {
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend]);
    const answers = await Promise.all(Array.from({ length: 64 }, () => router.submit("run-1")));
    expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([200, 202]));
    expect(posts(backend)).toHaveLength(1);
  });

  it("of many ids at once asks for health far less often than it posts", async () => {
    const held = Promise.withResolvers<void>();
    await using backend = await ScriptedBackend.open(async (request, socket) => {
      if (request.path === "/v1/health") await held.promise;
      return willing(request, socket);
    });
    await using router = await openTestRouter([backend]);
    const answers = Promise.all(Array.from({ length: 64 }, (_, at) => router.submit(`run-${at}`)));
    await until("all of them", () => router.router.counts().running === 64);
    held.resolve();
    await answers;
    expect(posts(backend)).toHaveLength(64);
    // Those that were on their way to the first probe have another one.
    expect(backend.calls.filter((call) => call === "GET /v1/health").length).toBeLessThan(64);
  });

  it("does not share the health that was asked for with a token from before", async () => {
    const held = Promise.withResolvers<void>();
    await using backend = await ScriptedBackend.open(async (request, socket) => {
      if (request.path === "/v1/health") await held.promise;
      return willing(request, socket);
    });
    const roles = { client: [Buffer.from(tokens.client)], capability: [] };
    let now = { ...roles, backend: Buffer.from(tokens.backend) };
    await using router = await openTestRouter([backend], { tokens: { load: () => now } });
    const first = router.submit("run-1");
    await until("the first probe", () => backend.calls.length === 1);
    now = { ...roles, backend: Buffer.from("a-token-after-the-rotation") };
    const second = router.submit("run-2");
    await until("the second probe", () => backend.calls.length === 2);
    held.resolve();
    expect([(await first)?.status, (await second)?.status]).toEqual([202, 202]);
    const shown = backend.requests.slice(0, 2).map(({ fields }) => new Map(fields).get("Authorization"));
    expect(shown).toEqual([`Bearer ${tokens.backend}`, "Bearer a-token-after-the-rotation"]);
  });

  it("goes where a rule of the user's own says, and nowhere that is no backend", async () => {
    await using one = await ScriptedBackend.open();
    await using other = await ScriptedBackend.open();
    let place: string | undefined = other.origin;
    await using router = await openTestRouter([one, other], { placement: async () => place });
    expect((await router.submit("run-1"))?.status).toBe(202);
    expect([one.calls, posts(other).length]).toEqual([[], 1]);
    for (place of [undefined, "http://10.0.0.1:1"])
      expect(json(await router.submit("run-2"))).toEqual(noOwnership);
    expect(await router.ledger.lookup("run-2")).toBeUndefined();
    // Nobody that is healthy is no mistake of the rule's; an origin that it made up is.
    expect(router.events.filter(({ kind }) => kind === "defect")).toMatchObject([
      { error: { code: "CELLKIT_ROUTER_PLACEMENT" } },
    ]);
  });

  it("whose rule throws is not recorded, and the rule's error is told as a defect", async () => {
    await using backend = await ScriptedBackend.open();
    const cause = new TypeError("the rule's mistake");
    await using router = await openTestRouter([backend], { placement: () => Promise.reject(cause) });
    expect(json(await router.submit("run-1"))).toEqual(noOwnership);
    expect(await router.ledger.count()).toBe(0);
    const defect = router.events.find((event) => event.kind === "defect");
    expect(defect?.error).toMatchObject({ code: "CELLKIT_ROUTER_PLACEMENT", cause });
    expect(router.events).toContainEqual(
      expect.objectContaining({ kind: "claim", result: "failed", cause: "CELLKIT_ROUTER_PLACEMENT" }),
    );
  });

  it.each([
    ["busy", new LedgerBusyError("x", 1)],
    ["unavailable", new LedgerUnavailableError("x", "disk", "maybe")],
    ["corrupt", new CorruptRecordError("x", "0", "cut")],
    ["broken in an unknown way", new TypeError("defect")],
  ])("sends nothing when the ledger is %s", async (_state, error) => {
    await using backend = await ScriptedBackend.open();
    const ledger = await openMemoryLedger();
    const failing = Object.assign(ledger, {
      claim: () => Promise.reject(error),
      lookup: () => Promise.reject(error),
    });
    await using router = await openTestRouter([backend], { ledger: failing });
    const answer = await router.submit("run-1");
    expect([answer?.status, json(answer)]).toEqual([503, noOwnership]);
    const read = await router.read("/v1/executions/run-1");
    expect([read?.status, json(read)]).toEqual([503, { error: "execution ownership unavailable" }]);
    expect(backend.calls).toEqual([]);
    expect(router.events.some(({ kind }) => kind === "defect")).toBe(error instanceof TypeError);
    const failed = router.events.flatMap((event) =>
      "result" in event ? [`${event.kind} ${event.result}`] : [],
    );
    expect(failed).toEqual(["claim failed", "lookup failed"]);
  });
});

describe("a dispatcher whose name", () => {
  /** Names of this machine's loop, but for one that nobody answers for, and one that is said not to be. */
  const asked = new Set<string>();
  const lookup: LookupFunction = (name, _options, callback) => {
    asked.add(name);
    if (name === "silent.test") return;
    if (name === "gone.test") callback(Object.assign(new RangeError(name), { code: "ENOTFOUND" }), "", 0);
    else callback(null, "127.0.0.1", 4);
  };
  const namesOf = (backend: ScriptedBackend) => {
    const named = (name: string) => backend.origin.replace("127.0.0.1", name);
    return ["good.test", "silent.test", "gone.test"].map(named) as [string, string, string];
  };
  const openNamed = (origins: readonly string[], placement: Placement = placeByHash) => {
    const backends = { origins: async () => origins };
    return openTestRouter([], { backends, lookup, placement, limits: { connectMs: 300 } });
  };

  it.each([
    ["is not there", 2],
    ["nobody answers for", 1],
  ])("%s has no id bound to it, and others are reached meanwhile", async (_how, index) => {
    holdTime();
    await using backend = await ScriptedBackend.open();
    const origins = namesOf(backend);
    asked.clear();
    await using router = await openNamed(origins);
    const answer = router.submit("run-1", `X-Celln-Backend: ${origins[index]}\r\n`);
    await until("its lookup", () => asked.has(new URL(origins[index] ?? "").hostname));
    const good = await router.submit("run-2", `X-Celln-Backend: ${origins[0]}\r\n`);
    expect(good?.status).toBe(202);
    vi.advanceTimersByTime(300);
    const pinned = await answer;
    expect([pinned?.status, json(pinned)]).toEqual([503, noOwnership]);
    expect(await router.ledger.lookup("run-1")).toBeUndefined();
    expect(posts(backend)).toHaveLength(1);
    // It is free.
    expect((await router.submit("run-1", `X-Celln-Backend: ${origins[0]}\r\n`))?.status).toBe(202);
  });

  it("is not found is not healthy, and new ids go elsewhere", async () => {
    holdTime();
    await using backend = await ScriptedBackend.open();
    const [good, silent, gone] = namesOf(backend);
    let askedCount = 0;
    await using router = await openNamed([good, silent, gone], (request) =>
      placeByHash({
        ...request,
        health: async (origin) => {
          const health = request.health(origin);
          if (origin !== silent) return health;
          askedCount += 1;
          // Its connection has begun, and nothing else is waited for.
          await new Promise((next) => setImmediate(next));
          vi.advanceTimersByTime(300);
          return health;
        },
      }),
    );
    for (let at = 0; at < 6; at += 1) expect((await router.submit(`run-${at}`))?.status).toBe(202);
    expect(posts(backend)).toHaveLength(6);
    expect(askedCount).toBeGreaterThan(0);
  });

  it("many calls need is looked up once", async () => {
    await using backend = await ScriptedBackend.open();
    // Its answer counts for five seconds.
    holdTime();
    const names: string[] = [];
    const origin = backend.origin.replace("127.0.0.1", "good.test");
    await using router = await openTestRouter([], {
      backends: { origins: async () => [origin] },
      lookup: (name, options, callback) => {
        names.push(name);
        lookup(name, options, callback);
      },
    });
    await Promise.all(Array.from({ length: 20 }, (_, at) => router.submit(`run-${at}`)));
    await router.read("/v1/executions/run-1");
    expect([posts(backend).length, names]).toEqual([20, ["good.test"]]);
  });
});

it("a call that failed says whether it may have arrived", async () => {
  await using backend = await ScriptedBackend.open(() => undefined);
  const { signal } = new AbortController();
  const dispatchers = new Dispatchers({
    bounds: { ...defaultLimits, ...patientLimits },
    lookup: undefined,
    signal,
    emit: () => undefined,
  });
  const submit = () => dispatchers.submit(backend.origin, Buffer.from("{}"), Buffer.from(tokens.backend));
  await expect(submit()).rejects.toMatchObject({ sent: "maybe" });
  await backend.close();
  await expect(submit()).rejects.toMatchObject({ sent: "no" });
});

it("an event tells why a ledger fails, with the code that lies under it", async () => {
  await using backend = await ScriptedBackend.open();
  const refused = Object.assign(new TypeError("connect"), { code: "ECONNREFUSED" });
  const cause = new TypeError("no connection", { cause: new AggregateError([refused]) });
  const error = new LedgerUnavailableError("postgresql://db/plane", "connect ECONNREFUSED", "no", { cause });
  const ledger = Object.assign(await openMemoryLedger(), { claim: () => Promise.reject(error) });
  await using router = await openTestRouter([backend], { ledger });
  await router.submit("run-1");
  expect(router.events.find(({ kind }) => kind === "claim")).toMatchObject({
    code: "CELLKIT_LEDGER_UNAVAILABLE",
    problem: error.message,
    cause: "ECONNREFUSED",
  });
});

describe("calls about an execution", () => {
  it("go to the recorded owner, whatever its health", async () => {
    await using backend = await ScriptedBackend.open(({ method, path }) =>
      path === "/v1/health" ? jsonAnswer(503, {}) : jsonAnswer(method === "POST" ? 202 : 200, { path }),
    );
    await using router = await openTestRouter([backend]);
    await router.ledger.claim("run-1", "x", async () => backend.origin);
    expect(json(await router.read("/v1/executions/run-1"))).toEqual({ path: "/v1/executions/run-1" });
    expect(json(await router.read("/v1/executions/run-1/audit"))).toEqual({
      path: "/v1/executions/run-1/audit",
    });
    const cancelled = await rawCall(router.port, bodiless("POST", "/v1/executions/run-1/cancel"));
    expect(cancelled?.status).toBe(202);
    expect(backend.requests[2]?.fields).toContainEqual(["Content-Length", "0"]);
  });

  it("do not all wait for one dispatcher that is silent, so that others have room", async () => {
    holdTime();
    await using silent = await ScriptedBackend.open((request, socket) =>
      request.path === "/v1/executions/run-1" ? "hang" : willing(request, socket),
    );
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([silent, backend], {
      limits: { runningCount: 4 },
    });
    await router.ledger.claim("run-1", "x", async () => silent.origin);
    await router.ledger.claim("run-2", "x", async () => backend.origin);
    const waiting = [router.read("/v1/executions/run-1"), router.read("/v1/executions/run-1")];
    await until("two that wait", () => silent.calls.length === 2);
    // Two seconds of silence are the rule.
    vi.advanceTimersByTime(2_000);
    expect(json(await router.read("/v1/executions/run-1"))).toEqual(lost);
    expect(silent.calls).toHaveLength(2);
    expect((await router.read("/v1/executions/run-2"))?.status).toBe(200);
    expect(router.router.counts().running).toBe(2);
    await router.router.stop({ signal: AbortSignal.abort() });
    await Promise.all(waiting);
  });

  it.each([
    ["behind an empty line", (answer: string) => `\r\n${answer}`],
    ["behind a 103", (answer: string) => `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${answer}`],
    ["behind a 100", (answer: string) => `HTTP/1.1 100 Continue\r\n\r\n${answer}`],
    ["with a zero before it", (answer: string) => answer.replace(" 404 ", " 0404 ")],
  ])("never say that an id was not claimed: an owner's 404 %s stays hidden", async (_how, hide) => {
    await using backend = await ScriptedBackend.open(() =>
      hide(jsonAnswer(404, { error: "unknown execution" })),
    );
    for (const keepAlive of [false, true]) {
      await using router = await openTestRouter([backend], { keepAlive });
      await router.ledger.claim("run-1", "x", async () => backend.origin);
      for (const path of ["/v1/executions/run-1", "/v1/executions/run-1/audit"]) {
        const answer = await router.read(path);
        expect([answer?.status, json(answer)]).toEqual([503, lost]);
        expect(answer?.text).not.toContain("unknown execution");
      }
    }
  });

  it("are answered from the last head on, without those of 1xx before it", async () => {
    const answer = jsonAnswer(200, { requestId: "run-1" });
    await using backend = await ScriptedBackend.open(() => `HTTP/1.1 100 Continue\r\n\r\n${answer}`);
    await using router = await openTestRouter([backend]);
    await router.ledger.claim("run-1", "x", async () => backend.origin);
    expect((await router.read("/v1/executions/run-1"))?.text).toBe(answer);
  });

  it("show no token to an owner that is not configured", async () => {
    await using backend = await ScriptedBackend.open();
    await using removed = await ScriptedBackend.open();
    await using router = await openTestRouter([backend]);
    await router.ledger.claim("run-1", "x", async () => removed.origin);
    const answer = await router.read("/v1/executions/run-1");
    expect(json(answer)).toEqual({ error: "recorded owner removed from configured backends; no reroute" });
    expect([backend.calls, removed.calls]).toEqual([[], []]);
  });
});

it("prewarming has no fallback, no health probe and no record", async () => {
  await using backend = await ScriptedBackend.open(() => undefined);
  await using other = await ScriptedBackend.open();
  await using router = await openTestRouter([backend, other]);
  const body = '{"id":"run-1"}';
  const answer = await rawCall(
    router.port,
    `POST /v1/artifacts/prewarm HTTP/1.1\r\nAuthorization: Bearer ${tokens.client}\r\nX-Celln-Backend: ${backend.origin}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  expect(json(answer)).toEqual({ error: "pinned prewarm unavailable; no fallback" });
  expect([backend.calls, other.calls]).toEqual([["POST /v1/artifacts/prewarm"], []]);
  expect(await router.ledger.lookup("run-1")).toBeUndefined();
});

it("events tell what happened, without ids, bodies or tokens", async () => {
  await using backend = await ScriptedBackend.open();
  await using router = await openTestRouter([backend]);
  await router.submit("run-secret");
  await router.read("/v1/executions/run-secret");
  await router.read("/v1/executions/run-secret", "wrong-wrong-wrong-wrong-wrong");
  const requests = await until("three requests", () => {
    const found = router.events.filter((event) => event.kind === "request");
    return found.length === 3 && found;
  });
  expect(requests).toEqual([
    { kind: "request", route: "submit", status: 202, refusal: undefined, durationMs: expect.any(Number) },
    { kind: "request", route: "read", status: 200, refusal: undefined, durationMs: expect.any(Number) },
    { kind: "request", route: "read", status: 401, refusal: "unauthorized", durationMs: expect.any(Number) },
  ]);
  expect(router.events.map(({ kind }) => kind)).toEqual(
    expect.arrayContaining(["claim", "placed", "health", "backend"]),
  );
  expect(JSON.stringify(router.events)).not.toMatch(/run-secret|wrong-wrong|backend-backend|client-client/);
});
