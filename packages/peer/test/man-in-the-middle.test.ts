// Somebody between two nodes changes what passes: every change is seen before an application reads a wrong byte.
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { expect, inject, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { recordHeaderBytes } from "../src/core/record-layer.ts";
import { type DialTunnelOptions, dialTunnel } from "../src/dial-tunnel.ts";
import { cell, enter, startFleet } from "./support/fleet.ts";
import { type Middle, startMiddle, type Tamper } from "./support/middle.ts";
import { startNode } from "./support/node.ts";
import { quiet, testKey } from "./support/records.ts";

/** A small generator of the test's seed: the same choices each time. */
function choices(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

const attacks = ["flip", "drop", "repeat", "reorder", "insert", "truncate"] as const;

/** Attacks one whole record of the direction, after so many of them passed untouched. */
function attack(
  kind: (typeof attacks)[number],
  direction: "out" | "back",
  after: number,
  choose: (below: number) => number,
) {
  let passed = 0;
  let held = Buffer.alloc(0);
  let kept: Buffer | undefined;
  let isPastHead = false;
  const change = (record: Buffer): Buffer | undefined => {
    passed += 1;
    if (passed <= after) return record;
    if (passed > after + 1) {
      const earlier = kept;
      kept = undefined;
      return earlier === undefined ? record : Buffer.concat([record, earlier]);
    }
    switch (kind) {
      case "flip": {
        const copy = Buffer.from(record);
        const at = choose(copy.length);
        copy[at] = (copy[at] ?? 0) ^ (1 << choose(8));
        return copy;
      }
      case "drop":
        return Buffer.alloc(0);
      case "repeat":
        return Buffer.concat([record, record]);
      case "reorder":
        kept = record;
        return Buffer.alloc(0);
      case "insert":
        return Buffer.concat([record, randomBytes(1 + choose(40))]);
      case "truncate":
        return undefined;
    }
  };
  const tamper: Tamper = (chunk, from) => {
    if (from !== direction) return chunk;
    held = Buffer.concat([held, chunk]);
    const out: Buffer[] = [];
    if (!isPastHead) {
      const at = held.indexOf("\r\n\r\n");
      if (at < 0) return Buffer.alloc(0);
      out.push(held.subarray(0, at + 4));
      held = held.subarray(at + 4);
      isPastHead = true;
    }
    for (;;) {
      if (held.length < recordHeaderBytes) break;
      const length = recordHeaderBytes + held.readUIntBE(0, recordHeaderBytes);
      if (held.length < length) break;
      const changed = change(held.subarray(0, length));
      held = held.subarray(length);
      if (changed === undefined) return undefined;
      out.push(changed);
    }
    return Buffer.concat(out);
  };
  return tamper;
}

/** Both ends of a tunnel send ten pieces of a known text; what each read, and whether it failed. */
async function converse(middle: Middle, far: Promise<Duplex>, dial: () => Promise<Duplex>) {
  const near = quiet(await dial());
  const ends = [near, await far];
  const read = ["", ""];
  const pieces = Array.from({ length: 10 }, (_, i) => `piece ${i} of what was sent. `);
  for (const [i, end] of ends.entries()) {
    end.on("data", (chunk: Buffer) => {
      read[i] += chunk.toString("latin1");
    });
  }
  for (const piece of pieces) {
    for (const end of ends) end.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const end of ends) end.end();
  await until("end of both", () => ends.every((end) => end.closed));
  const failed = ends.map((end) => end.errored !== null);
  for (const end of ends) end.destroy();
  return { read, failed, sent: pieces.join(""), captured: Buffer.concat(middle.captured).toString("latin1") };
}

test("every attack on the records is seen by an end before a wrong byte is read", async () => {
  const rounds = inject("size") === "long" ? 1_700 : 8;
  const choose = choices(inject("seed"));
  let arrived = Promise.withResolvers<Duplex>();
  const node = await startNode({ onCluster: (tunnel) => arrived.resolve(quiet(tunnel)) });
  const middle = await startMiddle(node.address);
  const dial = () =>
    dialTunnel({ ...middle, kind: "cluster", key: testKey, self: "caller", destination: "owner" });
  for (let i = 0; i < rounds; i += 1) {
    for (const kind of attacks) {
      arrived = Promise.withResolvers<Duplex>();
      middle.captured = [];
      const direction = choose(2) === 0 ? "out" : "back";
      // Ten pieces may travel in fewer records; the end record is attacked, too.
      middle.tamper = attack(kind, direction, choose(3), choose);
      const { read, failed, sent } = await converse(middle, arrived.promise, dial);
      const victim = direction === "out" ? 1 : 0;
      const what = `${kind} ${direction} in round ${i}`;
      for (const text of read) expect(sent.startsWith(text), what).toBe(true);
      expect(failed[victim], what).toBe(true);
    }
  }
});

test("an untouched conversation arrives whole, and no plain text of it was on the wire", async () => {
  const arrived = Promise.withResolvers<Duplex>();
  const node = await startNode({ onCluster: (tunnel) => arrived.resolve(quiet(tunnel)) });
  const middle = await startMiddle(node.address);
  const { read, failed, sent, captured } = await converse(middle, arrived.promise, () =>
    dialTunnel({ ...middle, kind: "cluster", key: testKey, self: "caller", destination: "owner" }),
  );
  expect(read).toEqual([sent, sent]);
  expect(failed).toEqual([false, false]);
  expect(captured).toContain("x-cellkit-records");
  expect(captured).not.toContain("piece");
});

const head = (edit: (text: string) => string, direction: "out" | "back"): Tamper => {
  return (chunk, from, offset) =>
    from === direction && offset === 0 ? Buffer.from(edit(chunk.toString("latin1")), "latin1") : chunk;
};
const offerLine = /x-cellkit-records: [^\r]*\r\n/i;

const changes: [string, Tamper, Partial<DialTunnelOptions>, object][] = [
  [
    "the offer is taken out, the peer known to have records",
    head((text) => text.replace(offerLine, ""), "out"),
    { peerHasRecords: true },
    { code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 403 },
  ],
  [
    "the acceptance is taken out",
    head((text) => text.replace(offerLine, ""), "back"),
    { peerHasRecords: true },
    { code: "CELLKIT_PEER_RECORDS_MISSING" },
  ],
  [
    "the offer is taken out, records required",
    head((text) => text.replace(offerLine, ""), "out"),
    { records: "required" },
    { code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 403 },
  ],
  [
    "the offer's nonce is changed",
    head((text) => text.replace(/nonce=[0-9a-f]{32}/, `nonce=${"0".repeat(32)}`), "out"),
    {},
    { code: "CELLKIT_PEER_TUNNEL_HEAD" },
  ],
  [
    "the acceptance's nonce is changed",
    head((text) => text.replace(/nonce=[0-9a-f]{32}/, `nonce=${"0".repeat(32)}`), "back"),
    {},
    { code: "CELLKIT_PEER_TUNNEL_HEAD" },
  ],
  [
    "the proof is changed",
    head((text) => text.replace(/proof=[0-9a-f]{64}/, `proof=${"0".repeat(64)}`), "back"),
    {},
    { code: "CELLKIT_PEER_TUNNEL_HEAD" },
  ],
  [
    "the kind is changed",
    head((text) => text.replace("kind: do", "kind: rpc"), "out"),
    {},
    { code: "CELLKIT_PEER_TUNNEL_HEAD" },
  ],
  [
    "the source is changed",
    head((text) => text.replace("caller", "others"), "out"),
    {},
    { code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 401 },
  ],
];

test.each(changes)("a handshake is refused in which %s", async (_, tamper, options, expected) => {
  const node = await startNode({ onFetch: (__, response) => void response.end("x") });
  const middle = await startMiddle(node.address);
  middle.tamper = tamper;
  const dialled = dialTunnel({
    ...middle,
    kind: "do",
    key: testKey,
    self: "caller",
    destination: "owner",
    ...options,
  });
  await expect(dialled).rejects.toMatchObject(expected);
});

test("a captured establishment opens no second tunnel, and its answer opens none elsewhere", async () => {
  const node = await startNode({ onFetch: (_, response) => void response.end("x") });
  const middle = await startMiddle(node.address);
  const dial = () =>
    dialTunnel({ ...middle, kind: "do", key: testKey, self: "caller", destination: "owner" });
  let first: Buffer | undefined;
  middle.tamper = (chunk, from, offset) => {
    if (from === "out" && offset === 0) {
      first ??= chunk;
      return first;
    }
    return chunk;
  };
  (await dial()).destroy();
  await expect(dial()).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 409 });
});

test("calls of a client through somebody in between: nothing legible passes, and a change fails the call", async () => {
  const { client, store, nodes } = await startFleet([
    { onFetch: (request, response) => void request.pipe(response) },
  ]);
  const middle = await startMiddle(nodes[0]?.address ?? { host: "", port: 0 });
  enter(store, "owner", middle.address);
  const secret = "a secret that nobody may read";
  const post = async () =>
    (
      await client.fetch(cell, "http://cell/hidden", {
        method: "POST",
        body: secret,
        headers: { "x-own": secret },
      })
    ).text();
  expect(await post()).toBe(secret);
  const wire = Buffer.concat(middle.captured).toString("latin1");
  for (const word of [secret, "hidden", "Counter", "200 OK"]) expect(wire).not.toContain(word);
  middle.tamper = (chunk, from) => {
    if (from === "out" || chunk.toString("latin1").startsWith("HTTP/1.1 101")) return chunk;
    const copy = Buffer.from(chunk);
    copy[copy.length - 1] = (copy.at(-1) ?? 0) ^ 1;
    return copy;
  };
  const outcomes = new Set<string>();
  for (let i = 0; i < 4; i += 1) {
    const outcome = await post().catch((error: { code?: string }) => error.code ?? "no code");
    outcomes.add(outcome);
  }
  expect(outcomes).not.toContain(secret);
  expect([...outcomes].every((code) => code.startsWith("CELLKIT_PEER_"))).toBe(true);
});

test.each([
  ["offered", 403],
  ["required", 403],
  ["off", 101],
] as const)(
  "who takes the offer off gets no tunnel for itself, though nobody knows the dialler: a listener with records %s answers %i",
  async (records, status) => {
    const node = await startNode({ records, onFetch: () => expect.unreachable() });
    const middle = await startMiddle(node.address);
    middle.tamper = (chunk, from) => {
      if (from === "back") return chunk;
      return Buffer.from(chunk.toString("latin1").replace(/x-cellkit-records: [^\r]*\r\n/i, ""), "latin1");
    };
    const dialled = dialTunnel({
      ...middle,
      kind: "do",
      key: testKey,
      self: "stranger",
      destination: "owner",
      records: "required",
    });
    await expect(dialled).rejects.toThrow();
    expect(Buffer.concat(middle.captured).toString("latin1")).toContain(`\r\n\r\nHTTP/1.1 ${status} `);
  },
);
