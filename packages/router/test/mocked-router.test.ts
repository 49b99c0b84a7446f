// The router that applications are tested with answers as this one does: the same requests to both, each before its own dispatcher.
import { dispatcher, exampleRequest, type ScriptedDispatcher } from "@cellkit/testing";
import { mockedNetwork, routerHandlers } from "@cellkit/testing/msw";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestRouter, tokens } from "./support/router.ts";

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const client = { authorization: `Bearer ${tokens.client}` };
const discovery = { authorization: `Bearer ${tokens.capability}` };
const executions = "/v1/executions";
const prewarm = "/v1/artifacts/prewarm";
const pinned = (origin: string) => ({ ...client, "x-celln-backend": origin });
const bodyOf = (id: string, change: Record<string, unknown> = {}) =>
  JSON.stringify({ ...exampleRequest(id), ...change });
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const withCapabilities = (id: string, change: Record<string, unknown>) =>
  bodyOf(id, { capabilities: { ...exampleRequest(id).capabilities, ...change } });

function get(path: string, headers: Request["headers"] = client): Request {
  return { method: "GET", path, headers };
}
function post(path: string, body: string, headers: Request["headers"] = client): Request {
  return { method: "POST", path, headers, body };
}

/** In their order, as what one does shows in the next. */
function requests(origin: string): Request[] {
  const submitted = [
    ...[
      "",
      "{}",
      "x".repeat(65_537),
      '{"id":1}',
      '{"id":".."}',
      `\ufeff${bodyOf("bom")}`,
      `[${bodyOf("x1")}]`,
    ],
    ...['{"id":"dup1","id":"dup2"}', '{"id":"x2","a":1,"a":2}', '{"id":"x3","a":"\\ud800"}'],
    ...['{"id":"x4","a":1e999}', '{"id":"x5","a":-0}', '{"id":"x6","a":99999999999999999999}'],
    ...[`{"id":"x7","a":${nested(126)}}`, `{"id":"x8","a":${nested(127)}}`],
    ...[bodyOf("ok"), bodyOf("ok"), `${bodyOf("ok")}\n`, bodyOf("forge", { forge: { x: 1 } })],
    // The same id again after it was refused by the dispatcher: it is used up.
    ...['{"id":"x2","a":1,"a":2}', bodyOf("x2"), '{"id":"x4","a":1}'],
    ...[withCapabilities("big", { memoryBytes: 9e15 }), withCapabilities("big", { memoryBytes: 9e15 })],
  ].map((body) => post(executions, body));
  const known = [
    "dup1",
    "dup2",
    "x2",
    "x4",
    "x5",
    "x7",
    "x8",
    "ok",
    "nope",
    "bom",
    "a".repeat(513),
    "a:b",
    "%6fk",
  ];
  return [
    ...["/v1/cells", "/v1/cells?all=true", "/v1/cells/x", "/v1/capabilities", "/v1/capabilities?x"].flatMap(
      (path) => [get(path, discovery), get(path), get(path, {})],
    ),
    get("/v1/capabilities", { authorization: `bEaReR ${tokens.client}` }),
    get("/v1/capabilities", { authorization: `Basic ${tokens.client}` }),
    post("/v1/capabilities", "", discovery),
    post("/v1/cells", "", discovery),
    ...["/v1/health", "/v1/node", "/v1/parents", "/v1/parents/x", "/v1/scoped", "/v1/scoped/x"].map((path) =>
      get(path),
    ),
    ...["/v1/scoped/x", "/v1/parents", executions].map((path) => get(path, {})),
    get(`${executions}/ok`, { ...client, prefer: "wait=5" }),
    get(`${executions}/ok`, { ...client, prefer: "respond-async" }),
    { method: "PUT", path: executions, headers: client, body: "x" },
    { method: "DELETE", path: `${executions}/ok`, headers: client },
    ...submitted,
    post(executions, bodyOf("ok"), pinned(origin)),
    post(executions, bodyOf("ok"), pinned("http://other")),
    post(executions, bodyOf("pin"), pinned(origin)),
    get(`${executions}/ok`, pinned(origin)),
    post(`${executions}/ok/cancel`, "", pinned(origin)),
    ...known.flatMap((id) => [get(`${executions}/${id}`), get(`${executions}/${id}/audit`)]),
    ...["/ok?x=1", "/ok/", "/ok/other", "//ok"].map((path) => get(executions + path)),
    ...[post(prewarm, "x"), post(prewarm, "", pinned(origin)), post(prewarm, "{}", pinned(origin))],
    post(prewarm, bodyOf("warm"), pinned(origin)),
    ...["nope", "x2"].map((id) => post(`${executions}/${id}/cancel`, "")),
    post(`${executions}/ok/cancel`, "x"),
    post(`${executions}/ok/cancel`, ""),
  ];
}

async function ask(url: string, { method, path, headers, body }: Request): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers,
    ...(body === undefined || body === "" ? {} : { body }),
  });
  return { status: answer.status, body: comparable(JSON.parse(await answer.text())) };
}

/** Without what is different each time: moments, and what hangs on them. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
    if (name === "phase" && member === "Admitting") return [[name, "Running"]];
    return ["events", "processEpoch"].includes(name) ? [] : [[name, comparable(member)]];
  });
  return Object.fromEntries(members);
}

describe("a mocked router and this one", () => {
  const cases = requests("http://127.0.0.1:1");
  const answers: { real: Answer; mocked: Answer; runs: number }[] = [];
  let backend: ScriptedDispatcher;
  beforeAll(async () => {
    backend = await dispatcher({ token: tokens.backend, run: "hold" });
    const { origin } = backend;
    await using real = await openTestRouter([], { backends: { origins: async () => [origin] } });
    const reals: [Answer, number][] = [];
    for (const request of requests(origin)) {
      reals.push([await ask(`http://127.0.0.1:${real.port}`, request), backend.runs.size]);
    }
    const url = "http://router.test:8787";
    const plane = { token: tokens.client, capabilityToken: tokens.capability, run: "hold" } as const;
    const mocked = routerHandlers({ url, ...plane, backends: [{ origin }] });
    using _network = mockedNetwork(mocked.handlers);
    for (const [index, request] of requests(origin).entries()) {
      const [answer, runs] = reals[index] as [Answer, number];
      answers.push({ real: answer, mocked: await ask(url, request), runs: runs - mocked.runs.size });
    }
  });
  afterAll(() => backend.close());

  it.each(cases.map(({ method, path, headers, body }, index) => [index, method, path, headers, body]))(
    "%i: %s %.60s %j %.60s",
    (index) => {
      const answer = answers[Number(index)];
      expect(answer?.mocked).toEqual(answer?.real);
      expect(answer?.runs).toBe(0);
    },
  );

  it("were asked for what was refused, and for what ran", () => {
    const statuses = new Set(answers.map(({ real }) => real.status));
    expect([...statuses].toSorted()).toEqual([200, 202, 400, 401, 404, 409, 413, 503]);
  });
});
