// Requests that nobody means well with, callers and dispatchers that are slow, and thousands of connections with nothing on them.
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dispatcher, type ScriptedDispatcher } from "@cellkit/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { refusals } from "../src/core/answer.ts";
import { callBytes, executionBytes } from "./support/execution-request.ts";
import { answerOf, type HostileRequest, hostileRequests } from "./support/hostile-requests.ts";
import { type RawAnswer, rawCall } from "./support/raw-call.ts";
import { RouterProcess, TokenFiles } from "./support/router-process.ts";

const isLong = inject("size") === "long";
const idleCount = isLong ? 10_000 : 500;
/** What a wait for bytes may take. */
const operationMs = 10_000;

let directory: string;
let tokens: TokenFiles;
let backend: ScriptedDispatcher;
let router: RouterProcess;
const answers: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-hostile-"));
  tokens = await TokenFiles.create(join(directory, "tokens"));
  backend = await dispatcher({ tokenFile: tokens.path("backend") });
  router = await new RouterProcess([
    `--ownership-dir=${join(directory, "ledger")}`,
    `--backends=${backend.origin}`,
    ...tokens.flags,
  ]).start();
});
afterAll(async () => {
  await router.kill();
  await backend.close();
  await rm(directory, { recursive: true, force: true });
});

async function call(line: string, body?: Uint8Array): Promise<RawAnswer | undefined> {
  const answer = await rawCall(router.port, callBytes(line, tokens.token("client"), body));
  answers.push(answer?.text ?? "");
  return answer;
}

/** Runs work, some at a time. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const item = items[next] as T;
      next += 1;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

// One after the other would be the sum of all waits.
describe.concurrent("a router", () => {
  it("answers every hostile request as the specification says, or ends the connection", async () => {
    const requests = hostileRequests({
      client: tokens.token("client"),
      backend: tokens.token("backend"),
      capability: tokens.token("capability"),
    });
    expect(requests.length).toBeGreaterThan(300);
    const wrong: string[] = [];
    await inParallel(requests, async ({ name, bytes, outcome }: HostileRequest) => {
      const answer = await rawCall(router.port, bytes, { halfClose: outcome === "silent" });
      answers.push(answer?.text ?? "");
      const found = answer && `${answer.status} ${answer.body}`;
      const [status, error] = outcome === "silent" ? [] : answerOf(outcome);
      const wanted = outcome === "silent" ? undefined : `${status} ${JSON.stringify({ error })}`;
      if (found !== wanted) wrong.push(`${name}: ${found} instead of ${wanted}`);
    });
    expect(wrong).toEqual([]);
  });

  it("answers any bytes with a refusal or an end, whole or in pieces", async () => {
    const known = new Set(
      Object.values(refusals).map(([status, error]) => `${status} ${JSON.stringify({ error })}`),
    );
    const part = fc.oneof(
      fc.constantFrom(
        "GET ",
        "POST ",
        "/v1/executions",
        "/v1/executions/x",
        " HTTP/1.1",
        "\r\n",
        "\n",
        "\r",
        ":",
        " ",
      ),
      fc.constantFrom(
        "Content-Length: ",
        "Transfer-Encoding: ",
        "Authorization: Bearer ",
        "Prefer: ",
        "0",
        "9",
        "{",
        '"',
      ),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 30 }), fc.boolean(), async (parts, inPieces) => {
        const [first = "", ...pieces] = parts.map((each) => Buffer.from(each, "latin1"));
        const rest = inPieces ? pieces : [];
        const whole = inPieces ? first : Buffer.concat([Buffer.from(first), ...pieces]);
        const answer = await rawCall(router.port, Buffer.from(whole), { halfClose: true, pieces: rest });
        if (answer !== undefined) expect(known).toContain(`${answer.status} ${answer.body}`);
      }),
      { numRuns: isLong ? 2_000 : 100, seed: inject("seed") },
    );
  });

  it.each([
    ["nothing", ""],
    ["half a head", "GET /v1/executions/a HTTP/1.1\r\nHost"],
    ["half a body", "body"],
  ])("ends a caller that sends %s and then waits", async (_, sent) => {
    const half = callBytes("POST /v1/executions", tokens.token("client"), executionBytes("half")).subarray(
      0,
      -5,
    );
    const startedMs = performance.now();
    expect(await rawCall(router.port, sent === "body" ? half : sent)).toBeUndefined();
    // That it is this wait and none that is longer: connection.test.ts.
    expect(performance.now() - startedMs).toBeGreaterThan(operationMs - 500);
  });

  it("does not wait for a dispatcher longer than it may", async () => {
    for (const id of ["slow-read", "slow-cancel"])
      expect((await call("POST /v1/executions", executionBytes(id)))?.status).toBe(202);
    backend.fault({ call: "submit", id: "slow-submit" }, { kind: "swallow" });
    backend.fault({ call: "read", id: "slow-read" }, { kind: "black-hole" });
    backend.fault({ call: "cancel", id: "slow-cancel" }, { kind: "black-hole" });
    const found = await Promise.all([
      call("POST /v1/executions", executionBytes("slow-submit")),
      call("GET /v1/executions/slow-read"),
      call("POST /v1/executions/slow-cancel/cancel"),
    ]);
    const lost = { error: "recorded owner unavailable or outcome lost; no reroute or replay" };
    const uncertain = { error: "submission outcome unknown; owner retained; POST will not be replayed" };
    expect(found.map((answer) => JSON.parse(answer?.body ?? ""))).toEqual([uncertain, lost, lost]);
    // It did run, and its caller learns so by the same bytes.
    expect((await call("POST /v1/executions", executionBytes("slow-submit")))?.status).toBe(200);
    expect(backend.runs.get("slow-submit")).toBe(1);
  });

  it(`holds ${idleCount} idle connections in bounded memory, and serves others meanwhile`, async () => {
    const residentBytes = async () =>
      Number(/^process_resident_memory_bytes (\S+)$/m.exec((await router.internal("/metrics")).text)?.[1]);
    const before = await residentBytes();
    const sockets: Socket[] = [];
    try {
      for (let count = 0; count < idleCount; count += 1) {
        const socket = connect({ port: router.port, host: "127.0.0.1" }).on("error", () => undefined);
        sockets.push(socket);
        // Whoever waits longer than ten seconds for the others sends a byte of its own.
        socket.once("connect", () => socket.write("G"));
        if (count % 2_000 === 1_999)
          await until("connections", () => sockets.every(({ connecting }) => !connecting));
      }
      await until("open connections", async () => {
        const { text } = await router.internal("/metrics");
        return Number(/^router_connections (\d+)$/m.exec(text)?.[1]) >= idleCount;
      });
      expect((await call("GET /v1/executions/none"))?.status).toBe(404);
      const grownBytes = (await residentBytes()) - before;
      process.stdout.write(
        `${idleCount} idle connections: ${Math.round(grownBytes / idleCount)} bytes each\n`,
      );
      expect(grownBytes).toBeLessThan(64 * 1_048_576 + 16_384 * idleCount);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});

it("none of it reached a dispatcher, and no token is in a log or an answer", async () => {
  const submitted = backend.calls.filter(({ call: kind }) => kind === "submit").map(({ id }) => id);
  expect(submitted.sort()).toEqual(["slow-cancel", "slow-read", "slow-submit"]);
  expect(backend.calls.filter(({ call: kind }) => kind === "prewarm")).toEqual([]);
  expect((await call("POST /v1/executions", executionBytes("after")))?.status).toBe(202);
  const { text } = await router.internal("/metrics");
  expect(text).toContain("router_defects_total 0\n");
  expect(await router.daemon.stop(60_000)).toEqual({ code: 0, signal: null });
  const everything = [...router.lines, ...answers, text].join("\n");
  for (const token of tokens.all) expect(everything).not.toContain(token);
});
