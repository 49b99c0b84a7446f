// Three nodes and the road between them: every cell through every node, and what callers see of an owner's end.
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { timed } from "../../../tools/test-support/timed.ts";
import { until } from "../../../tools/test-support/until.ts";
import { closeFrames } from "./support/close-frames.ts";
import { Fleet } from "./support/fleet.ts";
import { mirrorProject, secret } from "./support/mirror-load.ts";
import { RawClient } from "./support/raw-client.ts";
import { SocketClient } from "./support/socket-client.ts";
import type { TestNode } from "./support/test-node.ts";

/** workerd's lease. */
const leaseMs = 20_000;
/** What a killed owner's cells take to open elsewhere; less when celld proves the death, which a frozen one cannot. */
const takeOverBoundMs = leaseMs + 40_000;

let fleet: Fleet;
let nodes: TestNode[];

beforeAll(async () => {
  ({ fleet, nodes } = await Fleet.start(3, { project: mirrorProject }));
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** The node of a place, started again when the test before ended it. */
async function nodeAt(index: number): Promise<TestNode> {
  if (nodes[index]?.process.exit !== undefined) nodes[index] = await fleet.node(index);
  const node = nodes[index] as TestNode;
  await node.ready();
  return node;
}

interface Facts {
  readonly runs: readonly string[];
  readonly faults: readonly string[];
}

/** What a cell has seen. Whichever node is asked first is its owner. */
async function factsAt(node: TestNode, cell: string): Promise<Facts> {
  const { status, body } = await node.ask(`/cells/${cell}/facts`);
  expect(status).toBe(200);
  return body as unknown as Facts;
}

/** What has come of a body that is read to its end. */
class Reading {
  text = "";
  /** Whether the end was a whole one. */
  readonly end: Promise<"whole" | "failed">;

  constructor(answer: Response) {
    this.end = this.#read(answer).then(
      () => "whole",
      () => "failed",
    );
  }

  async #read(answer: Response): Promise<void> {
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) this.text += chunk;
  }
}

it("every node serves requests, RPC and sockets for the cells of every node", async () => {
  const all = [await nodeAt(0), await nodeAt(1), await nodeAt(2)];
  for (const owner of all) {
    const cell = `of-${owner.node}`;
    expect(await factsAt(owner, cell)).toEqual({ faults: [], runs: [] });
    for (const [index, node] of all.entries()) {
      for (const [kind, action] of ["fetch", "rpc"].entries()) {
        const body = `${secret} 00000000000000${kind}${index}`;
        const answer = await fetch(`${node.publicUrl}/cells/${cell}/${action}`, { method: "POST", body });
        expect([answer.status, await answer.text()]).toEqual([200, body]);
      }
      const socket = await SocketClient.open(`${node.publicUrl}/cells/${cell}/socket`);
      const text = `${secret} ffffffffffffff0${index}`;
      expect(await socket.ask(text)).toBe(text);
      socket.end();
    }
    expect((await factsAt(owner, cell)).faults).toEqual([]);
  }
  expect(fleet.roadFailures).toEqual([]);
  expect((await fleet.road()).relay.connectionCount).toBeGreaterThan(0);
});

it("an owner is killed in the middle of an answer and of an upload: both fail, neither is run again", async () => {
  const owner = await nodeAt(0);
  const ingress = await nodeAt(1);
  for (const cell of ["read", "sent"]) expect((await factsAt(owner, cell)).runs).toEqual([]);
  const answer = await fetch(`${ingress.publicUrl}/cells/read/stream?ms=20`);
  expect(answer.status).toBe(200);
  const read = new Reading(answer);
  let stopped = false;
  const upload = fetch(`${ingress.publicUrl}/cells/sent/upload`, {
    method: "POST",
    duplex: "half",
    body: new ReadableStream({
      async pull(controller) {
        if (stopped) controller.close();
        else controller.enqueue(new Uint8Array(1_000));
        await new Promise((resolve) => setTimeout(resolve, 20));
      },
    }),
  } as RequestInit).then(
    (sent) => sent.status,
    () => "failed",
  );
  await until("upload under way", async () => (await factsAt(owner, "sent")).runs.length === 1);
  await until("answer under way", async () => (await factsAt(owner, "read")).runs.length === 1);
  await until("first line", () => read.text.includes("\n"));

  await owner.kill();
  const end = await read.end;
  stopped = true;
  expect(end).toBe("failed");
  expect(read.text).toMatch(new RegExp(`^(${secret} \\d+\n)+`));
  expect([500, 502, 503, "failed"]).toContain(await upload);

  // Its celld starts again and proves it dead, so that its cells need not wait for the lease.
  await nodeAt(0);
  for (const [cell, run] of [
    ["read", "stream"],
    ["sent", "upload"],
  ] as const) {
    const facts = await until(
      `cell ${cell} elsewhere`,
      () => factsAt(ingress, cell).catch(() => undefined),
      takeOverBoundMs,
    );
    expect(facts.runs).toEqual([run]);
  }
});

it("an owner drains: a socket through another node gets one close frame, 1012", async () => {
  const owner = await nodeAt(0);
  const ingress = await nodeAt(2);
  await factsAt(owner, "drained");
  const client = await RawClient.dial(ingress.port);
  client.send(
    "GET /cells/drained/socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await client.receive(`${secret} hello`);
  const drained = owner.drain();
  await until("close frame", () => closeFrames(client.text).length > 0);
  // The answer that ends it: an empty close frame, masked.
  client.send(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
  await client.finish();
  expect(closeFrames(client.text)).toEqual([{ code: 1012, reason: "node draining" }]);
  expect(await drained).toEqual({ code: 0, signal: null });
  expect((await factsAt(ingress, "drained")).faults).toEqual([]);
});

// A lease is 20 s of mere waiting.
it.runIf(inject("size") === "long")(
  "an owner is frozen: its callers fail within its lease and 2 s, are served at once when they repeat, and it fences itself when it thaws",
  async () => {
    const owner = await nodeAt(0);
    const ingress = await nodeAt(1);
    await factsAt(owner, "frozen");
    const socket = await SocketClient.open(`${ingress.publicUrl}/cells/frozen/socket`);
    const pids = [owner.process.pid ?? 0, await owner.workerdPid()];
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    // Calls from before the end of the lease, one by one: each has the whole bound for itself.
    const call = async () => {
      const { value, ownMs } = await timed(async () => {
        const answer = await fetch(`${ingress.publicUrl}/cells/frozen/facts`, {
          signal: AbortSignal.timeout(leaseMs + 60_000),
        }).catch(() => undefined);
        await answer?.body?.cancel();
        return answer?.status;
      });
      return { status: value, ownMs };
    };
    const calls = Array.from({ length: 4 }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index * 4_000));
      return await call();
    });
    const { value: ended, ownMs } = await timed(() => Promise.all(calls));
    for (const { status, ownMs } of ended) {
      expect([200, 500, 502, 503]).toContain(status);
      expect(ownMs).toBeLessThan(leaseMs + 2_000);
    }
    expect(ownMs).toBeLessThan(leaseMs + 4_000);
    const again = await call();
    expect(again.status).toBe(200);
    expect(again.ownMs).toBeLessThan(1_000);
    expect((await socket.closed()).code).toBe(1012);

    for (const pid of pids) process.kill(pid, "SIGCONT");
    const exit = await until("exit of the thawed node", () => owner.process.exit, 60_000);
    expect(exit).toEqual({ code: 3, signal: null });
    expect((await call()).status).toBe(200);
  },
);

// A record is 10 s of mere waiting.
it.runIf(inject("size") === "long")(
  "celld of an owner is frozen and its workerd is not: callers fail instead of hanging, and are served again when it thaws",
  async () => {
    const owner = await nodeAt(0);
    const ingress = await nodeAt(1);
    await factsAt(owner, "half-frozen");
    await factsAt(ingress, "half-frozen");
    const call = async () => {
      const answer = await fetch(`${ingress.publicUrl}/cells/half-frozen/facts`, {
        signal: AbortSignal.timeout(leaseMs + 60_000),
      });
      await answer.body?.cancel();
      return answer.status;
    };
    const pid = owner.process.pid ?? 0;
    process.kill(pid, "SIGSTOP");
    try {
      // One that was under way, and one from after the end of the record.
      for (const _ of ["under way", "new"]) expect([500, 502, 503]).toContain(await call());
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await until("answer of the thawed node", async () => (await call()) === 200, 60_000);
    expect(owner.process.exit).toBeUndefined();
  },
);
