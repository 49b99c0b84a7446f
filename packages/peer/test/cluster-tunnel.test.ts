import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { FleetKey } from "../src/core/fleet-key.ts";
import { type DialTunnelOptions, dialTunnel } from "../src/dial-tunnel.ts";
import type { TunnelOrigin } from "../src/peer-listener.ts";
import { startNode, type TestNode } from "./support/node.ts";
import { quiet, testKey } from "./support/records.ts";

const echo = (tunnel: Duplex) => void quiet(tunnel).pipe(tunnel);

function dial({ address }: TestNode, options: Partial<DialTunnelOptions> = {}): Promise<Duplex> {
  return dialTunnel({
    address,
    kind: "cluster",
    key: testKey,
    self: "caller",
    destination: "owner",
    ...options,
  });
}

test("a tunnel of kind cluster carries raw bytes both ways, in records", async () => {
  const origins: TunnelOrigin[] = [];
  const node = await startNode({
    onCluster: (tunnel, origin) => {
      origins.push(origin);
      echo(tunnel);
    },
  });
  const tunnel = await dial(node);
  const sent = randomBytes(2_000_000);
  tunnel.end(sent);
  expect((await buffer(tunnel)).equals(sent)).toBe(true);
  expect(origins).toEqual([{ kind: "cluster", source: "caller", recorded: true }]);
  await until("tunnel gone", () => node.listener.counts().raw === 0);
});

test("a listener without onCluster refuses the kind as any other that it does not know", async () => {
  const node = await startNode();
  await expect(dial(node)).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 400 });
});

test("a cluster tunnel is never without records, on either end", async () => {
  const node = await startNode({ onCluster: echo, records: "off" });
  await expect(dial(node, { records: "off" })).rejects.toMatchObject({ code: "CELLKIT_PEER_OPTION" });
  await expect(dial(node)).rejects.toMatchObject({ status: 403 });
});

test("each refusal says what it is about", async () => {
  const node = await startNode({ onCluster: echo });
  const otherKey = new FleetKey(Buffer.alloc(32, 8));
  await expect(dial(node, { key: otherKey })).rejects.toMatchObject({ status: 401, staleOwner: false });
  await expect(dial(node, { destination: "another" })).rejects.toMatchObject({
    status: 409,
    staleOwner: true,
  });
});

test.each([
  [-30_001, false],
  [-30_000, true],
  [30_000, true],
  [30_001, false],
])("a clock that is off by %i ms is accepted: %s", async (skewMs, isAccepted) => {
  const nowMs = Date.parse("2026-11-30T12:00:00Z");
  const node = await startNode({ onCluster: echo, clock: () => nowMs });
  const dialled = dial(node, { clock: () => nowMs + skewMs });
  if (isAccepted) (await dialled).destroy();
  else await expect(dialled).rejects.toMatchObject({ status: 401, dateMs: nowMs });
});

test("a peer that cannot be reached, and one that is no node, are told apart", async () => {
  const node = await startNode({ onCluster: echo });
  node.server.removeAllListeners("upgrade").removeAllListeners("request");
  node.server.on("request", (_, response) => void response.end("hello"));
  await expect(dial(node)).rejects.toMatchObject({ code: "CELLKIT_PEER_VERSION", version: undefined });
  node.kill();
  await expect(dial(node)).rejects.toMatchObject({ code: "CELLKIT_PEER_UNREACHABLE" });
});

test("a dialler that gave up leaves nothing behind", async () => {
  const node = await startNode({ onCluster: echo });
  const controller = new AbortController();
  controller.abort();
  await expect(dial(node, { signal: controller.signal })).rejects.toMatchObject({ name: "AbortError" });
  node.server.removeAllListeners("upgrade").on("upgrade", () => undefined);
  await expect(dial(node, { signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
    name: "TimeoutError",
  });
  await expect(dial(node, { answerTimeoutMs: 20 })).rejects.toMatchObject({
    code: "CELLKIT_PEER_UNREACHABLE",
  });
});

test("an owner that goes away is an error of the read, never an end", async () => {
  const node = await startNode({ onCluster: (tunnel) => void quiet(tunnel).write("half") });
  const tunnel = await dial(node);
  await once(tunnel, "data");
  node.kill();
  const [error] = await once(tunnel, "error");
  expect(error).toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
});
