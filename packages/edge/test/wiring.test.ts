// What the daemon does with its certificate's files. Their reading and watching is tried in @cellkit/daemon.
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CertificateWatch, createLogger } from "@cellkit/daemon";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { edgeOptions, startEdge } from "../src/index.ts";
import { TestCa, type TestPair } from "./support/certificates.ts";
import { requestBytes } from "./support/edge.ts";
import { type Answer, okAnswer, RawBackend } from "./support/raw-backend.ts";
import { TlsClient } from "./support/tls-client.ts";

const health = requestBytes("GET /v1/health");
const ca = new TestCa();
let directory: string;
let releases: (() => unknown)[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "edge-wiring-"));
  releases = [];
});
afterEach(async () => {
  for (const release of releases.reverse()) await release();
  await rm(directory, { recursive: true });
});

async function write(name: string, text: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(`${path}.next`, text);
  await rename(`${path}.next`, path);
  return path;
}

/** A daemon in this process. */
async function start({ cert, key }: TestPair, flags: Record<string, unknown> = {}, answer?: Answer) {
  const backend = await RawBackend.open(answer);
  releases.push(() => backend.close());
  const lines: string[] = [];
  const config = edgeOptions.parse({
    backend: backend.origin.origin,
    listen: "127.0.0.1:0",
    tlsCert: await write("tls.crt", cert),
    tlsKey: await write("tls.key", key),
    executionRouter: true,
    ...flags,
  });
  const running = await startEdge(
    {
      ...{ config, from: {}, signal: new AbortController().signal },
      log: createLogger({ name: "edge", stream: { write: (line) => void lines.push(line) } }),
      defer: (_name, release) => void releases.push(() => release(new AbortController().signal)),
      requestStop: () => undefined,
      fail: () => undefined,
    },
    "0.0.0",
  );
  releases.push(() => running.stop("the test is over"));
  const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const ready = logged().find(({ msg }) => msg === "ready");
  return {
    logged,
    port: Number(String(ready?.["listen"]).split(":").at(-1)),
    metrics: async () => (await fetch(`http://${ready?.["internal"]}/metrics`)).text(),
    health: () => fetch(`http://${ready?.["internal"]}/health`),
    stop: () => running.stop("a test says so"),
  };
}

it("another client CA serves its clients from then on, and no more those of the CA before", async () => {
  const [before, after] = [new TestCa("before"), new TestCa("after")];
  const edge = await start(ca.issue(), { clientCa: await write("ca.crt", before.cert) });
  const [early, late] = [before.issue(), after.issue()];
  const statuses = async (pair: TestPair) => {
    using client = await TlsClient.dial(edge.port, { ca: ca.cert, ...pair });
    client.send(health);
    await until("an answer or the end", () => client.isClosed || client.text.includes("\r\n\r\n"));
    return client.isClosed ? "refused" : client.text.slice(9, 12);
  };
  expect([await statuses(early), await statuses(late)]).toEqual(["200", "refused"]);
  await write("ca.crt", after.cert);
  await until("the other CA", () => edge.logged().some(({ msg }) => msg === "new certificate in use"));
  expect([await statuses(early), await statuses(late)]).toEqual(["refused", "200"]);
  const metrics = await edge.metrics();
  for (const line of [
    "edge_certificate_reloads_total 1",
    "edge_certificate_reload_failures_total 0",
    "edge_certificate_reload_failing 0",
    "edge_connections_dropped_total 0",
  ])
    expect(metrics.split("\n")).toContain(line);
});

it("a certificate that has expired is told at the start, and served", async () => {
  const edge = await start(ca.issue({ validToMs: Date.now() - 1_000 }));
  expect(edge.logged().filter(({ level }) => level === "error")).toEqual([
    expect.objectContaining({
      msg: expect.stringMatching(/^the certificate expired at \S+: clients will refuse it$/),
    }),
  ]);
  using client = await TlsClient.dial(edge.port, { rejectUnauthorized: false });
  client.send(health);
  expect((await client.answers())[0]?.status).toBe(200);
});

it("--max-connections is the listener's: the next connection is told so", async () => {
  const edge = await start(ca.issue(), { maxConnections: 1 });
  using _served = await TlsClient.dial(edge.port, { ca: ca.cert });
  using excess = await TlsClient.dial(edge.port, { ca: ca.cert });
  excess.send(health);
  expect((await excess.answers())[0]?.status).toBe(503);
});

it("its health is 503 from the begin of its stop on, while a request still runs", async () => {
  const parked: Socket[] = [];
  const edge = await start(ca.issue(), {}, (_, socket) => void parked.push(socket));
  using client = await TlsClient.dial(edge.port, { ca: ca.cert });
  client.send(health);
  await until("the request at the backend", () => parked.length === 1);
  expect([(await edge.health()).status]).toEqual([200]);
  const stopped = edge.stop();
  const answer = await edge.health();
  expect([answer.status, await answer.json()]).toEqual([503, { ok: false }]);
  parked[0]?.write(okAnswer);
  expect((await client.answers())[0]?.status).toBe(200);
  expect((await stopped).outcome).toBe("clean");
});

it("the certificate's files are looked at no more once it is released", async () => {
  const close = vi.spyOn(CertificateWatch.prototype, "close");
  onTestFinished(() => close.mockRestore());
  await start(ca.issue());
  expect(close).not.toHaveBeenCalled();
  for (const release of releases.splice(0).reverse()) await release();
  expect(close).toHaveBeenCalled();
});

it("files that are no pair end the start under the edge's own code", async () => {
  const { cert } = ca.issue();
  await expect(start({ cert, key: ca.issue().key })).rejects.toMatchObject({
    code: "CELLKIT_EDGE_CERTIFICATE",
    message: expect.stringMatching(
      /^operator TLS certificate\/key unavailable: \S+tls\.crt does not belong to the key \S+tls\.key$/,
    ),
    cause: { code: "CELLKIT_DAEMON_CERTIFICATE" },
  });
});
