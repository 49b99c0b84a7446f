// The daemon itself: how it starts, is checked, gets another certificate under load, and stops.

import { createServer, type Socket } from "node:net";
import { expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { bearer, requestBytes } from "./support/edge.ts";
import { EdgeProcess } from "./support/edge-process.ts";
import { nobody, okAnswer, RawBackend } from "./support/raw-backend.ts";

const health = requestBytes("GET /v1/health", [`Authorization: Bearer ${bearer}`]);

it("it serves, tells its health and figures on a port of its own, and ends with 0", async () => {
  await using backend = await RawBackend.open();
  await using edge = await EdgeProcess.prepare();
  const daemon = edge.run(backend.origin.origin);
  const { port, internal } = await edge.ready();
  using client = await edge.client(port);
  client.send(health);
  expect((await client.answers())[0]?.status).toBe(200);
  client.send(requestBytes("GET /v1/cells", [`Authorization: Bearer ${bearer}`]));
  await client.answers(2);
  expect(await (await fetch(`http://${internal}/health`)).json()).toEqual({ ok: true });
  const metrics = await (await fetch(`http://${internal}/metrics`)).text();
  for (const line of [
    'edge_requests{outcome="forwarded"} 1',
    'edge_requests{outcome="no-route"} 1',
    "edge_connections 1",
    "edge_certificate_reload_failing 0",
  ])
    expect(metrics).toContain(`${line}\n`);
  expect(metrics).toMatch(/^edge_certificate_expiry_timestamp_seconds \d{10}$/m);
  expect(await daemon.stop(60_000)).toEqual({ code: 0, signal: null });
  expect(edge.lines.join("\n")).not.toContain(bearer);
  expect(await client.closed()).toHaveLength(2);
});

it.each([
  ["parents alone", ["--listen", "127.0.0.1:0"], [200, 404, 404]],
  ["executions alone", ["--execution-router", "--listen", "127.0.0.1:0"], [404, 200, 404]],
  [
    "executions by the original's ids alone",
    ["--execution-router", "--strict-ids", "--listen", "127.0.0.1:0"],
    [404, 404, 200],
  ],
])("its flags let %s pass", async (_what, args, statuses) => {
  await using backend = await RawBackend.open();
  await using edge = await EdgeProcess.prepare();
  const daemon = edge.run(backend.origin.origin, args);
  const { port } = await edge.ready();
  using client = await edge.client(port);
  for (const path of ["parents", "executions/_", "executions/a:b"])
    client.send(requestBytes(path === "parents" ? "POST /v1/parents" : `GET /v1/${path}`));
  expect((await client.answers(3)).map(({ status }) => status)).toEqual(statuses);
  expect(backend.requests).toHaveLength(1);
  expect(await daemon.stop(60_000)).toEqual({ code: 0, signal: null });
});

it("a certificate is replaced under load without a failed request, and one that is broken is not used", async () => {
  await using backend = await RawBackend.open();
  await using edge = await EdgeProcess.prepare();
  edge.run(backend.origin.origin);
  const { port } = await edge.ready();
  let isOver = false;
  let answered = 0;
  const seen = new Set<string>();
  const fresh = async () => {
    while (!isOver) {
      using client = await edge.client(port);
      seen.add(client.socket.getPeerCertificate().subject.CN ?? "");
      expect((await client.send(health).answers())[0]?.status).toBe(200);
      answered += 1;
    }
  };
  const kept = async () => {
    using client = await edge.client(port);
    while (!isOver) {
      client.text = "";
      expect((await client.send(health).answers())[0]?.status).toBe(200);
      answered += 1;
    }
  };
  const load = Promise.all([fresh(), fresh(), kept(), kept()]);
  load.catch(() => undefined); // Told where it is awaited.
  const rounds = inject("size") === "long" ? 10 : 2;
  for (let round = 1; round <= rounds; round += 1) {
    await edge.write(edge.ca.issue({ name: `round ${round}` }));
    await until("the new certificate", () =>
      Promise.race([seen.has(`round ${round}`), load.then(() => false)]),
    );
  }
  await edge.write({ cert: "broken", key: "broken" });
  await edge.logged(/is not a PEM certificate; the certificate in use stays/);
  const before = answered;
  await until("requests on the old certificate", () => answered > before + 10);
  isOver = true;
  await load;
  expect(answered).toBeGreaterThan(20);
  expect(backend.problems).toEqual([]);
  expect(backend.requests.length).toBe(answered);
  expect(edge.log.filter(({ level }) => level === "error")).toHaveLength(1);
});

it("SIGTERM lets a running request end, and takes no other", async () => {
  const parked: Socket[] = [];
  await using backend = await RawBackend.open((_, socket) => void parked.push(socket));
  await using edge = await EdgeProcess.prepare();
  const daemon = edge.run(backend.origin.origin);
  const { port } = await edge.ready();
  using idle = await edge.client(port);
  using client = await edge.client(port);
  client.send(requestBytes("POST /v1/executions", [], "{}") + requestBytes("POST /v1/executions", [], "[]"));
  await until("the request at the backend", () => parked.length === 1);
  daemon.signal("SIGTERM");
  await edge.logged("stopping");
  await idle.closed();
  await expect(edge.client(port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(daemon.exit).toBeUndefined();
  parked[0]?.write(okAnswer);
  expect(await client.closed()).toMatchObject([
    { status: 200, fields: { connection: "close" }, body: '{"ok":true}' },
  ]);
  expect(await daemon.exited).toEqual({ code: 0, signal: null });
  expect(backend.requests.length).toBe(1);
});

it.skipIf(inject("size") === "sample")("a request that outlasts 20 s is cut, and the code is 4", async () => {
  await using backend = await RawBackend.open(() => undefined);
  await using edge = await EdgeProcess.prepare();
  const daemon = edge.run(backend.origin.origin);
  const { port } = await edge.ready();
  using client = await edge.client(port);
  client.send(health);
  await until("the request at the backend", () => backend.requests.length === 1);
  const startMs = performance.now();
  expect(await daemon.stop(60_000)).toEqual({ code: 4, signal: null });
  expect(performance.now() - startMs).toBeGreaterThan(19_000);
  expect(await client.closed()).toEqual([]);
});

it("--check tells what is wrong, all of it, and listens nowhere", async () => {
  await using backend = await RawBackend.open();
  await using edge = await EdgeProcess.prepare();
  const check = ["--check", "--execution-router", "--listen", `127.0.0.1:${backend.origin.port}`];
  expect(await edge.run(backend.origin.origin, check).exited).toEqual({ code: 0, signal: null });
  await edge.logged("the check found nothing wrong");
  await until("no connection left", () => backend.connections.open === 0);
  expect(backend.requests).toEqual([]);

  edge.lines.length = 0;
  await edge.write(edge.ca.issue({ validToMs: Date.now() - 1_000 }));
  expect(await edge.run(nobody.origin, check).exited).toEqual({ code: 1, signal: null });
  await edge.logged(
    /^the check failed: the certificate \S+ expired at \S+; the backend \S+ does not accept connections \(ECONNREFUSED\)$/,
  );
});

it("a taken port ends it with 1, bad flags with 2, each in one line that says why", async () => {
  await using edge = await EdgeProcess.prepare();
  const taker = createServer();
  await new Promise<void>((resolve) => taker.listen(0, "127.0.0.1", resolve));
  const address = taker.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  expect(await edge.run("http://127.0.0.1:1", ["--listen", `127.0.0.1:${port}`]).exited).toEqual({
    code: 1,
    signal: null,
  });
  await edge.logged(/^cannot listen on 127\.0\.0\.1:\d+: the port is taken/);
  await new Promise<void>((resolve) => taker.close(() => resolve()));

  expect(await edge.run("http://localhost:1", ["--execution-router", "--scoped-receiver"]).exited).toEqual({
    code: 2,
    signal: null,
  });
  expect(edge.lines.join("\n")).toMatch(
    /--backend "http:\/\/localhost:1": fixed literal loopback HTTP dispatcher origin required/,
  );
});
