import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type DiagnosisTarget, diagnoseNode, type NodeDiagnosis } from "../src/diagnose-node.ts";
import { createProbeKey } from "../src/probe-key.ts";
import {
  type FakeNode,
  type FakeNodeOptions,
  fakeNode,
  fleetKey,
  otherKey,
  servingState,
} from "./support/fake-node.ts";
import { nobodysAddress } from "./support/nobody.ts";

// The wall clock stands still, in the middle of a second: a pause of the machine is no skew.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-11-30T12:00:00.500Z") }));
afterEach(() => void vi.useRealTimers());

/** The record of a node. */
function recordOf(node: FakeNode, given: Partial<DiagnosisTarget> = {}): DiagnosisTarget {
  const { publicKeyHex: probePublicKey } = node.probeKey;
  return {
    addr: node.addr,
    node: node.node,
    peerProtocol: 5,
    probePublicKey,
    expiresMs: Date.now() + 10_000,
    ...given,
  };
}

async function diagnose(
  options: FakeNodeOptions,
  given: Partial<DiagnosisTarget> = {},
  keys = [fleetKey],
): Promise<NodeDiagnosis> {
  await using node = await fakeNode(options);
  return await diagnoseNode(recordOf(node, given), { keys });
}

/** Expects a skew that an answer's `Date` told: cut to the second, and as of half of its way. */
function expectSkew({ skewMs, roundTripMs }: NodeDiagnosis, expectedMs: number): void {
  expect(Math.abs((skewMs ?? Number.NaN) - expectedMs)).toBeLessThanOrEqual(501 + (roundTripMs ?? 0) / 2);
}

/** An original: it does not say in its state whether it is being stopped, and answers one generation's probe. */
const original = { ownership: "s3", occupied: 0 };

it("a node that serves is ready, and proved to be the one that wrote the record", async () => {
  const found = await diagnose({});
  expect(found).toMatchObject({
    node: "node-a",
    verdict: "ready",
    proved: true,
    peerProtocol: 5,
    version: "1.2.3",
  });
  expectSkew(found, 0);
});

describe("told apart", () => {
  it.each<[string, FakeNodeOptions, Partial<DiagnosisTarget>, Partial<NodeDiagnosis>, RegExp]>([
    [
      "another key",
      { keys: [otherKey] },
      {},
      { verdict: "wrong-key" },
      /fleet key is another one: does it use/,
    ],
    ["a clock far ahead", { skewMs: 45_000 }, {}, { verdict: "clock-skew" }, /4[345] s ahead/],
    ["a clock far behind", { skewMs: -3_600_000 }, {}, { verdict: "clock-skew" }, /360[012] s behind/],
    [
      "both",
      { keys: [otherKey], skewMs: 45_000 },
      {},
      { verdict: "wrong-key" },
      /and its clock is 4[345] s ahead/,
    ],
    [
      "another process at the address",
      {},
      { probePublicKey: createProbeKey().publicKeyHex },
      { verdict: "wrong-node", proved: false },
      /another process/,
    ],
    [
      "another node at the address",
      { node: "node-b" },
      { node: "node-a" },
      { verdict: "wrong-node" },
      /another node/,
    ],
    ["another address", { advertise: "10.0.0.9:1" }, {}, { verdict: "wrong-node" }, /another address/],
    [
      "an older generation",
      { speaks: [2] },
      {},
      { verdict: "wrong-version", peerProtocol: 2 },
      /speaks protocol 2, and protocol 5/,
    ],
    [
      "a newer generation",
      { speaks: [5] },
      { peerProtocol: 2 },
      { verdict: "wrong-version", peerProtocol: 5 },
      /speaks protocol 5, and protocol 2/,
    ],
    [
      "a generation nobody knows",
      {},
      { peerProtocol: 7 },
      { verdict: "wrong-version", peerProtocol: 7 },
      /protocol 7/,
    ],
    [
      "a node without a probe",
      { speaks: [] },
      {},
      { verdict: "wrong-version" },
      /no probe of protocol 2 or 5/,
    ],
    [
      "what is no node",
      { speaks: [], state: undefined },
      {},
      { verdict: "not-a-node" },
      /no node's internal listener/,
    ],
    [
      "one being stopped",
      { state: { ...servingState, draining: true } },
      {},
      { verdict: "draining", proved: true },
      /being stopped/,
    ],
    [
      "one that starts",
      { state: { ...servingState, runtime: { state: "starting" } } },
      {},
      { verdict: "not-ready", proved: true },
      /is starting/,
    ],
    [
      "one that does not renew its record",
      {},
      { expiresMs: Date.parse("2026-11-30T11:59:00.500Z") },
      { verdict: "not-ready", proved: true },
      /ran out 60 s ago/,
    ],
    [
      "a proof that is none",
      { instead: (reply) => ({ ...reply, body: "{}" }) },
      {},
      { verdict: "not-a-node" },
      /malformed/,
    ],
    [
      "a full replay cache",
      { instead: (reply) => ({ ...reply, status: 503, body: "peer replay cache is full" }) },
      {},
      { verdict: "not-ready" },
      /503 "peer replay cache is full"/,
    ],
    [
      "an answer without end",
      { instead: (reply) => ({ ...reply, body: "x".repeat(5_000) }) },
      {},
      { verdict: "not-ready" },
      /over 4096 bytes/,
    ],
  ])("%s", async (_, options, given, expected, detail) => {
    const found = await diagnose(options, given);
    expect(found).toMatchObject(expected);
    expect(found.detail).toMatch(detail);
  });

  it("no connection", async () => {
    const addr = `${nobodysAddress.host}:${nobodysAddress.port}`;
    const found = await diagnoseNode({ addr, node: "gone" }, { keys: [fleetKey] });
    expect(found).toMatchObject({ node: "gone", verdict: "unreachable", proved: false });
    expect(found.detail).toMatch(/ECONNREFUSED/);
    const later = await diagnoseNode({ addr, expiresMs: Date.now() - 60_000 }, { keys: [fleetKey] });
    expect(later).toMatchObject({ verdict: "gone", detail: expect.stringMatching(/ran out 60 s ago/) });
  });

  it("what speaks no HTTP", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {}).write("SSH-2.0-x\r\n");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const addr = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await diagnoseNode({ addr, node: "x" }, { keys: [fleetKey] })).toMatchObject({
      verdict: "not-a-node",
    });
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it("what takes the connection and says nothing, as a process that is stopped does", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const sockets: Socket[] = [];
    server.on("connection", (socket) => sockets.push(socket));
    const addr = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const found = await diagnoseNode({ addr, node: "x" }, { keys: [fleetKey], answerTimeoutMs: 100 });
    expect(found).toMatchObject({
      verdict: "not-ready",
      detail: expect.stringMatching(/nothing complete within 100 ms/),
    });
    expect(sockets).toHaveLength(2);
    const unchecked = await diagnoseNode({ addr }, { keys: [], answerTimeoutMs: 100 });
    expect(unchecked.verdict).toBe("not-ready");
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it("an address that is none", async () => {
    expect(await diagnoseNode({ addr: "" }, { keys: [fleetKey] })).toMatchObject({ verdict: "unreachable" });
  });
});

describe("of an original", () => {
  it.each([
    [
      "2 that serves",
      { speaks: [2] as const, state: original },
      { verdict: "ready", proved: true, peerProtocol: 2 },
    ],
    [
      "2 that is being stopped",
      { speaks: [2] as const, state: original, refusing: true },
      { verdict: "draining" },
    ],
    ["5 that serves", { speaks: [5] as const, state: original }, { verdict: "ready", peerProtocol: 5 }],
  ])("protocol %s", async (_, options, expected) => {
    expect(await diagnose(options, { peerProtocol: options.speaks[0] })).toMatchObject(expected);
  });

  it.each([45_000, -200_000])(
    "a clock that is %s ms off is measured though its answers have no time",
    async (skewMs) => {
      const found = await diagnose({ skewMs, withoutDate: true, state: original }, { expiresMs: undefined });
      expect(found.verdict).toBe("clock-skew");
      expect(Math.abs((found.skewMs ?? Number.NaN) - skewMs)).toBeLessThan(2_500);
    },
  );

  it("a clock hours off is found by what its record tells", async () => {
    const skewMs = 7_200_000;
    const expiresMs = Date.now() + skewMs + 8_000;
    const found = await diagnose({ skewMs, withoutDate: true, state: original }, { expiresMs });
    expect(found.verdict).toBe("clock-skew");
    expect(Math.abs((found.skewMs ?? Number.NaN) - skewMs)).toBeLessThan(2_500);
  });

  it("a wrong key is told with the doubt that is left", async () => {
    const found = await diagnose({ keys: [otherKey], withoutDate: true, state: original });
    expect(found).toMatchObject({ verdict: "wrong-key", skewMs: undefined });
    expect(found.detail).toMatch(/or its clock is off by more than 5 minutes/);
  });
});

it("a clock 30 s off is ready, and how far it is off is told", async () => {
  const found = await diagnose({ skewMs: 30_000 });
  expect(found.verdict).toBe("ready");
  expectSkew(found, 30_000);
});

it("a node that did not follow a rotation is told apart from one with a foreign key", async () => {
  const found = await diagnose({ keys: [otherKey] }, {}, [fleetKey, otherKey]);
  expect(found.verdict).toBe("wrong-key");
  expect(found.detail).toMatch(/does not follow the rotation/);
});

it("a node of another generation than the fleet's is told, though its record agrees with it", async () => {
  await using node = await fakeNode({ speaks: [2], state: original });
  const found = await diagnoseNode(recordOf(node, { peerProtocol: 2 }), {
    keys: [fleetKey],
    expectedProtocol: 5,
  });
  expect(found.verdict).toBe("wrong-version");
});

describe("of a node without a record", () => {
  it("the name that it gives itself is taken, and nothing is proved", async () => {
    await using node = await fakeNode();
    expect(await diagnoseNode({ addr: node.addr }, { keys: [fleetKey] })).toMatchObject({
      node: "node-a",
      verdict: "ready",
      proved: false,
    });
  });

  it("a name that none can have is not taken", async () => {
    await using node = await fakeNode({ state: { ...servingState, node: "a b" } });
    const found = await diagnoseNode({ addr: node.addr }, { keys: [fleetKey] });
    expect(found).toMatchObject({ node: undefined, verdict: "ready" });
  });

  it("its key is still checked when it gives itself none", async () => {
    await using node = await fakeNode({ state: original });
    expect((await diagnoseNode({ addr: node.addr }, { keys: [fleetKey] })).verdict).toBe("ready");
    expect((await diagnoseNode({ addr: node.addr }, { keys: [otherKey] })).verdict).toBe("wrong-key");
  });

  it("without a key only what is open is looked at, and nothing is signed", async () => {
    await using node = await fakeNode({ state: { ...servingState, draining: true } });
    expect((await diagnoseNode({ addr: node.addr }, { keys: [] })).verdict).toBe("draining");
    expect(node.requests).toEqual(["GET /state"]);
  });
});

it("the caller's abort ends it", async () => {
  await using node = await fakeNode();
  const stopped = new DOMException("stopped", "AbortError");
  const signal = AbortSignal.abort(stopped);
  await expect(diagnoseNode(recordOf(node), { keys: [fleetKey], signal })).rejects.toBe(stopped);
});
