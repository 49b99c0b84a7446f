// The clients of executions behind an edge that serves only those with a certificate.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CapabilityClient, RouterClient } from "@cellkit/execution";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TestCa, type TestPair } from "./support/certificates.ts";
import { TestEdge } from "./support/edge.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "edge-client-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(directory, { recursive: true, force: true });
});

const record = JSON.stringify({ requestId: "run-1", phase: "Running" });
const answer = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${record.length}\r\n\r\n${record}`;

/** Options for both clients. */
async function optionsFor(edge: TestEdge, pair: TestPair | undefined) {
  const file = async (name: string, text: string) => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  return {
    url: `https://127.0.0.1:${edge.port}`,
    tokenFile: await file("token", "client-credential-of-the-tests"),
    caFile: await file("ca.crt", edge.ca.cert),
    ...(pair === undefined
      ? {}
      : {
          clientCertFile: await file("tls.crt", pair.cert),
          clientKeyFile: await file("tls.key", pair.key),
        }),
  };
}

it("both clients are served with a certificate of the edge's client CA", async () => {
  const clientCa = new TestCa("clients");
  await using edge = await TestEdge.open({ clientCa, answer: (_, socket) => void socket.write(answer) });
  const options = await optionsFor(edge, clientCa.issue({ name: "controller" }));
  expect(await new RouterClient(options).get("run-1")).toEqual({ requestId: "run-1", phase: "Running" });
  // The backend is no router: that it answered is what counts.
  expect(await new CapabilityClient(options).probe()).toMatchObject({ state: "incompatible" });
  expect(edge.backend.requests.map(({ line }) => line)).toEqual([
    "GET /v1/executions/run-1 HTTP/1.1",
    "GET /v1/capabilities HTTP/1.1",
  ]);
});

it.each<[string, (clientCa: TestCa) => TestPair | undefined]>([
  ["without one", () => undefined],
  ["with one of another CA", () => new TestCa("clients").issue()],
  ["with one that has expired", (clientCa) => clientCa.issue({ validToMs: Date.now() - 1_000 })],
])("both clients, %s, are told that they were refused, and that nothing was sent", async (_, pairOf) => {
  const clientCa = new TestCa("clients");
  await using edge = await TestEdge.open({ clientCa });
  const options = await optionsFor(edge, pairOf(clientCa));
  const client = new RouterClient(options);
  const refused = { code: "CELLKIT_EXECUTION_CLIENT_REFUSED", sent: "no", next: "same-id" };
  // Time stands still while the only try begins, which so has half a minute; when it ends, that is over.
  let nowMs = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  for (let at = 0; at < 5; at += 1) {
    const submitted = client.submit(Buffer.from(`{"id":"run-${at}"}`), { resumed: false, timeoutMs: 30_000 });
    nowMs += 30_000;
    await expect(submitted).rejects.toMatchObject({ sent: "no", cause: refused });
  }
  expect(await new CapabilityClient(options).probe()).toMatchObject({ state: "unreachable" });
  expect(edge.backend.connections.ever).toBe(0);
});
