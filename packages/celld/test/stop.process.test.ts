// The ways in which a node is told to stop, the codes with which it ends, and what it says about itself meanwhile.
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { parseAnswers, RawClient } from "./support/raw-client.ts";
import { SocketClient } from "./support/socket-client.ts";
import type { LogLine, TestNode } from "./support/test-node.ts";

let fleet: Fleet;

beforeAll(async () => {
  fleet = await Fleet.open();
  await fleet.deploy();
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function started(env?: Record<string, string>): Promise<TestNode> {
  const node = await fleet.node(0, env === undefined ? {} : { env });
  await node.ready();
  return node;
}

/** A request that takes a minute, and runs. */
async function longRequest(node: TestNode): Promise<RawClient> {
  const client = await RawClient.dial(node.port);
  client.send("GET /slow?ms=60000 HTTP/1.1\r\nHost: chat.example\r\n\r\n");
  await until("request in flight", async () => (await node.state())["in_flight"] === 1);
  return client;
}

it("a second signal ends the node at once with 130", async () => {
  const node = await started();
  await longRequest(node);
  node.process.signal("SIGTERM");
  await node.draining();
  node.process.signal("SIGINT");
  expect(await node.process.exited).toEqual({ code: 130, signal: null });
  await node.gone();
});

it("a request that outlasts the drain's bound gets 502 with an unknown outcome, and the code is 4", async () => {
  const node = await started({ CELLD_SHUTDOWN_DRAIN_MS: "2000" });
  const client = await longRequest(node);
  expect(await node.drain()).toEqual({ code: 4, signal: null });
  expect(parseAnswers(await client.finish())).toMatchObject([
    {
      status: 502,
      fields: {
        "proxy-status": "celld; error=connection_terminated",
        "cellkit-outcome": "unknown",
        connection: "close",
      },
    },
  ]);
  const late = ({ msg, step }: LogLine) => msg === "stop: timed out" && step === "let requests end";
  expect(await node.logged("step", late)).toMatchObject({ level: "error" });
  await node.gone();
});

it("POST /shutdown answers at once and drains; other methods and the preserve drain are refused", async () => {
  const node = await started();
  const ask = async (method: string, query = "") => {
    const answer = await fetch(`${node.internalUrl}/shutdown${query}`, { method });
    return [answer.status, await answer.json()];
  };
  expect((await ask("GET"))[0]).toBe(405);
  expect(await ask("POST", "?handoff=preserve")).toEqual([501, { error: "preserve_not_supported" }]);
  expect((await node.state())["draining"]).toBe(false);
  expect(await ask("POST")).toEqual([200, { ok: true }]);
  expect(await node.process.exited).toEqual({ code: 0, signal: null });
  expect(await node.logged("stopping", ({ msg }) => msg === "stopping")).toMatchObject({
    reason: "POST /shutdown",
  });
});

it("/state, /metrics and health tell what the node does", async () => {
  const node = await started({ CELLD_OTEL: "0", CELLD_MAX_RSS_MB: "6553" });
  await node.ask("/rooms/a/boot");
  const sockets = [
    await SocketClient.open(`${node.publicUrl}/rooms/a/socket`),
    await SocketClient.open(`${node.publicUrl}/rooms/b/regular`),
  ];
  const state = await until("counts of answered requests", async () => {
    const counted = await node.counted();
    return counted["in_flight"] === 0 && counted;
  });
  expect(state).toEqual({
    ownership: "s3",
    node: "node-0",
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    runtime: { engine: "workerd", state: "ready", restarts: 0, pid: expect.any(Number) },
    deployment: { script_name: "chat", version: expect.stringMatching(/^[0-9a-f]{16}$/) },
    draining: false,
    occupied: 2,
    restoring: 0,
    shedding: null,
    rss_bytes: expect.any(Number),
    residents: [expect.stringMatching(/^Room:[0-9a-f]{64}$/), expect.stringMatching(/^Room:[0-9a-f]{64}$/)],
    regular_sockets: 1,
    connections: expect.any(Number),
    in_flight: 0,
    sockets: 2,
  });

  const answer = await fetch(`${node.internalUrl}/metrics`);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  const metrics = await answer.text();
  const label = 'node="node-0"';
  for (const line of [
    `celld_healthy{${label}} 1`,
    `celld_draining{${label}} 0`,
    `celld_sockets{${label}} 2`,
    `celld_resident_cells{${label}} 2`,
    `celld_cells_opened{${label}} 2`,
    `celld_regular_sockets{${label}} 1`,
    `celld_workerd_restarts{${label}} 0`,
    `celld_public_requests{outcome="upgraded",${label}} 2`,
    `celld_ignored_variable{variable="CELLD_OTEL",${label}} 1`,
    `celld_ignored_variable{variable="CELLD_MAX_RSS_MB",${label}} 1`,
  ]) {
    expect(metrics).toContain(`\n${line}\n`);
  }
  expect((await fetch(`${node.internalUrl}/nothing`)).status).toBe(404);
  const health = await fetch(`${node.publicUrl}/__celld/health`, { method: "POST", body: "any method" });
  expect([health.status, await health.text()]).toEqual([200, '{"ok":true}']);
  for (const socket of sockets) socket.end();
  expect(await node.drain()).toEqual({ code: 0, signal: null });
});
