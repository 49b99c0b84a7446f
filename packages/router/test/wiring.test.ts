// That flags of the daemon reach what they are for. Each part is tried by itself elsewhere.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, type RunningDaemon } from "@cellkit/daemon";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { placeByHash, routerOptions, startRouter } from "../src/index.ts";
import { holdSocketTimeouts } from "./support/held-time.ts";
import { rawCall } from "./support/raw-call.ts";
import { bodiless, submission, writeTokens } from "./support/router.ts";
import { ScriptedBackend } from "./support/scripted-backend.ts";

let directory: string;
let releases: (() => unknown)[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-wiring-"));
  releases = [];
});
afterEach(async () => {
  for (const release of releases.reverse()) await release();
  await rm(directory, { recursive: true, maxRetries: 10 });
});

/** A daemon in this process, as its flags would have it. */
async function start(flags: Record<string, unknown>) {
  const files = writeTokens(directory);
  const config = routerOptions.parse({
    clientTokenFile: files.client,
    tokenFile: files.backend,
    ownershipDir: join(directory, "ledger"),
    listen: "127.0.0.1:0",
    replica: "one",
    ...flags,
  });
  const lines: string[] = [];
  const log = createLogger({ name: "router", stream: { write: (line) => void lines.push(line) } });
  const running: RunningDaemon = await startRouter(
    {
      config,
      from: {},
      log,
      signal: new AbortController().signal,
      defer: (_name, release) => void releases.push(() => release(new AbortController().signal)),
      requestStop: () => undefined,
      fail: () => undefined,
    },
    "0.0.0",
  );
  releases.push(() => running.stop("the test is over"));
  const ready = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === "ready");
  const port = Number(ready.listen.split(":").at(-1));
  return {
    submit: (id: string) => rawCall(port, submission(id)),
    read: (id: string) => rawCall(port, bodiless("GET", `/v1/executions/${id}`)),
    metrics: async () => (await fetch(`http://${ready.internal}/metrics`)).text(),
  };
}

describe("--no-fingerprint", () => {
  const notes = () => readdir(join(directory, "ledger", "cellkit-router")).catch(() => []);

  it("leaves nothing beside the ledger, where a router without it leaves its note", async () => {
    const backends = "http://127.0.0.1:1";
    const without = await start({ backends, fingerprint: false });
    const other = await start({ backends, replica: "two" });
    await until("a note", async () => (await notes()).length > 0);
    await until("a look", async () => (await other.metrics()).includes("\nrouter_replicas 1\n"));
    expect(await notes()).toEqual(["cellkit-router-two.fingerprint"]);
    expect(await without.metrics()).toMatch(/^router_replicas 0$/m);
  });
});

describe("--mode", () => {
  it.each([
    ["round-robin", 0],
    ["random", 1],
  ])("%s places ids of one hash", async (mode, secondCount) => {
    await using first = await ScriptedBackend.open();
    await using second = await ScriptedBackend.open();
    const backends = [first.origin, second.origin];
    const placed = async (id: string) =>
      await placeByHash({
        id,
        body: Buffer.of(),
        backends,
        health: async () => ({ healthy: true, node: undefined }),
        signal: AbortSignal.any([]),
      });
    const router = await start({ backends: backends.join(","), mode });
    const posts = ({ calls }: ScriptedBackend) =>
      calls.filter((call) => call === "POST /v1/executions").length;
    // By chance, all of 64 go to the first one in ten million million million times.
    const mostCount = mode === "random" ? 64 : 20;
    let submitted = 0;
    for (let at = 0; submitted < mostCount && posts(second) === 0; at += 1) {
      if ((await placed(`run-${at}`)) !== first.origin) continue;
      expect((await router.submit(`run-${at}`))?.status).toBe(202);
      submitted += 1;
    }
    expect(posts(first) + posts(second)).toBe(submitted);
    expect(posts(second)).toBe(secondCount);
  });
});

describe("--keep-backends", () => {
  it("lets three reads come over one connection", async () => {
    // Neither side ends one that waits for long.
    holdSocketTimeouts();
    const sockets = new Set<Socket>();
    const server = createServer((request, response) => {
      const isRead = request.method === "GET" && request.url !== "/v1/health";
      if (isRead) sockets.add(request.socket);
      const body = JSON.stringify(
        isRead ? { requestId: "run-1", phase: "Running" } : { ok: true, kvm: true },
      );
      response.writeHead(200, { "Content-Length": Buffer.byteLength(body) }).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    releases.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const backends = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const router = await start({ backends, keepBackends: true });
    expect((await router.submit("run-1"))?.status).toBe(200);
    for (let read = 0; read < 3; read += 1) expect((await router.read("run-1"))?.status).toBe(200);
    // The health probe before the submission left one that the first read takes.
    expect(sockets.size).toBe(1);
  });
});

it("what happens is in /metrics: a claim, a POST without an answer, a dispatcher's health, the ledger's size", async () => {
  await using backend = await ScriptedBackend.open();
  const { answer } = backend;
  backend.answer = (request, socket) => (request.method === "POST" ? undefined : answer(request, socket));
  const router = await start({ backends: backend.origin, ledgerCapacity: 7 });
  expect((await router.submit("run-1"))?.body).toMatch(/submission outcome unknown/);
  const text = await router.metrics();
  for (const line of [
    'router_claims_total{result="new"} 1',
    `router_uncertain_submissions_total{backend="${backend.origin}"} 1`,
    `router_backend_healthy{backend="${backend.origin}",node=""} 1`,
    `router_backend_calls_total{backend="${backend.origin}",call="submit",status="0"} 1`,
    "router_ledger_capacity 7",
  ])
    expect(text.split("\n")).toContain(line);
});
