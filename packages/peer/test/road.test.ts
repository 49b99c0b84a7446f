import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { FleetKey } from "../src/core/fleet-key.ts";
import { aliasesFor, aliasKey, roadAliasOf } from "../src/core/road-alias.ts";
import { formatNodeRecord, nodeRecordKey } from "../src/node-record.ts";
import { claimRoadAlias } from "../src/road-alias.ts";
import { type RoadFailure, RoadRelay, type RoadRelayOptions } from "../src/road-relay.ts";
import { MemoryStore } from "./support/memory-store.ts";
import { startNode } from "./support/node.ts";
import { nodeRecord } from "./support/node-record.ts";
import { quiet, testKey } from "./support/records.ts";

const relays: RoadRelay[] = [];
afterEach(async () => {
  for (const relay of relays.splice(0)) await relay.close();
});

const echo = (tunnel: Duplex) => void quiet(tunnel).pipe(tunnel);

const closed = (socket: Socket) =>
  new Promise<void>((resolve) => void socket.resume().once("close", () => resolve()));

/** A node "owner" with an alias and a record, and a relay that carries to it. */
async function road(options: Partial<RoadRelayOptions> = {}, onCluster: (tunnel: Duplex) => void = echo) {
  const store = new MemoryStore();
  /** The relay's: it goes on when the test says so. */
  const time = { ms: Date.now() };
  const node = await startNode({ onCluster });
  const alias = await claimRoadAlias(store, "owner");
  const write = (given: Parameters<typeof nodeRecord>[0]) =>
    store.put(nodeRecordKey(given.node), formatNodeRecord(nodeRecord(given)));
  const addr = `${node.address.host}:${node.address.port}`;
  write({ node: "owner", addr, roadAlias: alias.address, expiresMs: time.ms + 60_000 });
  const failures: RoadFailure[] = [];
  const relay = new RoadRelay({
    store,
    keys: () => [testKey],
    self: "caller",
    recordGraceMs: 150,
    clock: () => time.ms,
    onFailure: (failure) => failures.push(failure),
    ...options,
  });
  relays.push(relay);
  const port = await relay.listen(0);
  const dial = (host = alias.address): Socket => {
    const socket = connect({ host, port });
    socket.on("error", () => undefined);
    return socket;
  };
  /** Waits for the next look at the record of the node. */
  const nextLook = async (what: string) => {
    const looks = () => store.calls.filter((call) => call === `get ${nodeRecordKey("owner")}`).length;
    const before = looks();
    await until(what, () => looks() > before);
  };
  return { store, time, node, alias, write, addr, relay, port, dial, failures, nextLook };
}

test("what is sent to a node's alias comes out at that node, and its answer comes back", async () => {
  const { dial, relay, node } = await road();
  const socket = dial();
  const sent = Buffer.alloc(3_000_000, "a road");
  socket.end(sent);
  expect((await buffer(socket)).equals(sent)).toBe(true);
  await until(
    "the connection gone at both ends",
    () => relay.connectionCount === 0 && node.listener.counts().raw === 0,
  );
});

test("the end of the node's own connection ends the dialling one", async () => {
  const tunnels: Duplex[] = [];
  const { dial } = await road({}, (tunnel) => void tunnels.push(quiet(tunnel)));
  const socket = dial();
  socket.write("x");
  await until("the tunnel", () => tunnels.length === 1);
  const isClosed = closed(socket);
  tunnels[0]?.destroy();
  await isClosed;
});

test("an alias that nobody has, or whose node is not live under it, is refused and told", async () => {
  const { dial, write, addr, failures, alias, time } = await road();
  await closed(dial("127.77.9.9"));
  expect(failures.map(({ error }) => (error as Error).message)).toEqual(["no node has the alias 127.77.9.9"]);
  for (const wrong of [
    { roadAlias: "127.77.9.9", expiresMs: time.ms + 60_000 },
    { roadAlias: alias.address, expiresMs: time.ms },
  ]) {
    write({ node: "owner", addr, ...wrong });
    await closed(dial());
  }
  expect(failures).toHaveLength(3);
});

test("no address but an alias is carried, and no more connections than allowed", async () => {
  const { dial, relay } = await road({ maxConnectionCount: 1 });
  await closed(dial("127.0.0.1"));
  const first = dial();
  first.write("x");
  await once(first, "data");
  await closed(dial());
  expect(relay.connectionCount).toBe(1);
  first.destroy();
});

test("a node with another fleet key is not reached, nor does it reach anybody", async () => {
  const { dial, failures, node } = await road({ keys: () => [new FleetKey(Buffer.alloc(32, 9))] });
  await closed(dial());
  expect(failures[0]?.error).toMatchObject({ code: "CELLKIT_PEER_TUNNEL_REFUSED", status: 401 });
  expect(node.listener.counts().raw).toBe(0);
});

test("connections to a process whose lease has lapsed are cut, and one whose lease was renewed goes on", async () => {
  let expiryMs = 0;
  let askedCount = 0;
  const { dial, failures, time } = await road({
    leaseExpiryMs: async () => {
      askedCount += 1;
      return expiryMs;
    },
  });
  expiryMs = time.ms + 300;
  const socket = dial();
  socket.write("x");
  await once(socket, "data");
  time.ms += 299;
  const before = askedCount;
  await until("a question", () => askedCount > before);
  expiryMs += 300;
  time.ms += 2;
  await until("two more questions", () => askedCount > before + 2);
  socket.write("y");
  await once(socket, "data");
  expect(failures).toEqual([]);
  time.ms += 300;
  await closed(socket);
  expect(failures[0]?.error).toMatchObject({ code: "CELLKIT_PEER_ROAD_ALIAS" });
});

test("a lease that cannot be asked for is no lapsed one", async () => {
  let askedCount = 0;
  const { dial } = await road({
    leaseExpiryMs: async () => {
      askedCount += 1;
      throw new Error("the store is away");
    },
  });
  const socket = dial();
  socket.write("x");
  await once(socket, "data");
  await until("several questions", () => askedCount > 2);
  expect(socket.destroyed).toBe(false);
  socket.destroy();
});

test("connections to a frozen node are cut when its record has lapsed, though the lease of its process holds", async () => {
  const { dial, failures, write, addr, alias, time, nextLook } = await road({
    leaseExpiryMs: async () => time.ms + 60_000,
  });
  const record = (lifeMs: number) =>
    write({ node: "owner", addr, roadAlias: alias.address, expiresMs: time.ms + lifeMs });
  record(150);
  const socket = dial();
  socket.write("x");
  await once(socket, "data");
  time.ms += 150;
  await nextLook("look at the record once it is out of force");
  await nextLook("another one");
  socket.write("y");
  await once(socket, "data");
  time.ms += 150;
  await closed(socket);
  expect(failures.map(({ error }) => (error as Error).message)).toEqual([
    `the record of the node behind ${alias.address} has lapsed: its connections are cut`,
  ]);
  await closed(dial());
  expect(failures.map(({ error }) => (error as Error).message)[1]).toMatch(/is not live under it/);
  record(60_000);
  const thawed = dial();
  thawed.write("y");
  expect(String((await once(thawed, "data"))[0])).toBe("y");
  thawed.destroy();
});

test("a record that its node renews, late too, or that cannot be read, cuts nothing", async () => {
  const { dial, failures, write, addr, alias, store, time, nextLook } = await road();
  const record = (lifeMs: number) =>
    write({ node: "owner", addr, roadAlias: alias.address, expiresMs: time.ms + lifeMs });
  record(150);
  const socket = dial();
  socket.write("x");
  await once(socket, "data");
  time.ms += 150;
  await nextLook("look at the record once it is out of force");
  record(150);
  time.ms += 149;
  await nextLook("look at the record that was renewed meanwhile");
  time.ms += 1;
  await nextLook("look at the record once it is out of force again");
  store.put(nodeRecordKey("owner"), "not a record");
  time.ms += 1_000;
  await nextLook("look at what cannot be read");
  socket.write("z");
  await once(socket, "data");
  expect(failures).toEqual([]);
  socket.destroy();
});

test("a port is shared by those only who all say so, and the refusal tells what to do", async () => {
  const relay = () => {
    const made = new RoadRelay({ store: new MemoryStore(), keys: () => [testKey], self: "x" });
    relays.push(made);
    return made;
  };
  const refused = (message: RegExp) => ({
    code: "CELLKIT_PEER_ROAD_ALIAS",
    message: expect.stringMatching(message),
  });
  const port = await relay().listen(0, { shared: true });
  if (process.platform === "linux") expect(await relay().listen(port, { shared: true })).toBe(port);
  await expect(relay().listen(port)).rejects.toMatchObject(refused(/one relay is enough for a machine/));
  const alone = await relay().listen(0);
  await expect(relay().listen(alone, { shared: true })).rejects.toMatchObject(refused(/--no-road-relay/));
});

/** An address of this machine in a network, if it has one. */
const outside = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === "IPv4" && !each.internal)?.address;

test.skipIf(outside === undefined)("what comes to an address of the network is reset", async () => {
  const { dial, relay, failures } = await road();
  const socket = dial(outside);
  await closed(socket);
  expect(socket.bytesRead).toBe(0);
  expect(relay.connectionCount).toBe(0);
  expect(failures).toEqual([]);
});

test("nodes that claim at the same time get an alias each, and one of a former life gets its own again", async () => {
  const store = new MemoryStore();
  const names = Array.from({ length: 40 }, (_, n) => `node-${n}`);
  const aliases = await Promise.all(names.map((node) => claimRoadAlias(store, node)));
  expect(new Set(aliases.map(({ address }) => address)).size).toBe(40);
  const again = await claimRoadAlias(store, "node-7");
  expect(again.address).toBe(aliases[7]?.address);
});

test("a claim falls to another node only when it was given back or its node is dead", async () => {
  const store = new MemoryStore();
  const [address = ""] = aliasesFor("newcomer");
  const claim = (node: string, claimedMs: number) =>
    store.put(
      aliasKey(address),
      JSON.stringify({ node, claimed_ms: claimedMs, salt: String(Math.random()) }),
    );
  const nowMs = 10_000_000;
  const got = async () => {
    const alias = await claimRoadAlias(store, "newcomer", { clock: () => nowMs });
    await alias.free();
    return alias.address === address;
  };
  claim("other", nowMs - 1_000);
  expect(await got(), "it may be starting").toBe(false);
  claim("other", nowMs - 100_000);
  expect(await got(), "it never wrote a record").toBe(true);
  claim("other", nowMs - 100_000);
  store.put(nodeRecordKey("other"), formatNodeRecord(nodeRecord({ node: "other", expiresMs: nowMs + 1 })));
  expect(await got(), "it lives").toBe(false);
  store.put(
    nodeRecordKey("other"),
    formatNodeRecord(nodeRecord({ node: "other", expiresMs: nowMs - 100_000 })),
  );
  expect(await got(), "it is dead").toBe(true);
  store.put(aliasKey(address), "not a claim");
  expect(await got(), "nobody's to take").toBe(false);
});

test("giving an alias back leaves one alone that was taken over in the meantime", async () => {
  const store = new MemoryStore();
  const alias = await claimRoadAlias(store, "old");
  store.put(aliasKey(alias.address), JSON.stringify({ node: "new", claimed_ms: 1, salt: "s" }));
  await alias.free();
  expect(store.text(aliasKey(alias.address))).toContain('"new"');
});

test("an alias is loopback, never a network's first or last address, and known in its IPv6 form", () => {
  for (const alias of aliasesFor("any")) expect(roadAliasOf(alias)).toBe(alias);
  expect(roadAliasOf("::ffff:127.77.3.4")).toBe("127.77.3.4");
  for (const other of [
    "127.0.0.1",
    "127.77.0.1",
    "127.77.1.0",
    "127.77.255.1",
    "10.77.1.1",
    "127.77.1",
    "",
    undefined,
  ])
    expect(roadAliasOf(other)).toBeUndefined();
});
