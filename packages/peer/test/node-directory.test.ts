import { describe, expect, it } from "vitest";
import { heldClock } from "../../../tools/test-support/held-clock.ts";
import { NodeRecordError, NoLiveNodeError, PeerOptionError } from "../src/errors.ts";
import { NodeDirectory } from "../src/node-directory.ts";
import { formatNodeRecord, type NodeRecord, nodeRecordKey } from "../src/node-record.ts";
import { MemoryStore, StoreFailure } from "./support/memory-store.ts";
import { nodeRecord } from "./support/node-record.ts";

const nowMs = 500_000;
const clock = () => nowMs;

function storeOf(...records: NodeRecord[]): MemoryStore {
  const store = new MemoryStore();
  for (const record of records) store.put(nodeRecordKey(record.node), formatNodeRecord(record));
  return store;
}

it("tells live, expired and unreadable records apart, and passes over what is no record", async () => {
  const store = storeOf(
    nodeRecord({ node: "b", expiresMs: nowMs + 1 }),
    nodeRecord({ node: "a", expiresMs: nowMs + 9 }),
    nodeRecord({ node: "old", expiresMs: nowMs }),
  );
  store.put("nodes/bad.json", "{}");
  store.put("nodes/README", "no record");
  store.put("nodes/deeper/a.json", "no record");
  const listing = await new NodeDirectory(store, { clock }).list();
  expect(listing.live.map(({ node }) => node)).toEqual(["a", "b"]);
  expect(listing.expired.map(({ node }) => node)).toEqual(["old"]);
  expect(listing.unreadable).toEqual([{ key: "nodes/bad.json", reason: expect.stringMatching(/node/) }]);
  expect(listing.truncated).toBe(false);
});

it("asks the store once for all who ask at the same time and shortly after", async () => {
  const store = storeOf(nodeRecord({ node: "a" }));
  const directory = new NodeDirectory(store, { clock });
  const cacheClock = heldClock();
  await Promise.all([directory.list(), directory.find("a"), directory.pick()]);
  cacheClock.ms += 999;
  await directory.list();
  expect(store.calls).toEqual(["list nodes/", "get nodes/a.json"]);
  cacheClock.ms += 1;
  await directory.list();
  expect(store.calls).toEqual(["list nodes/", "get nodes/a.json", "list nodes/"]);
});

it("reads a record again only when it changed, and sees one that came or went", async () => {
  const store = storeOf(nodeRecord({ node: "a" }), nodeRecord({ node: "b" }));
  const directory = new NodeDirectory(store, { clock, cacheMs: 0 });
  await directory.list();
  store.calls.length = 0;
  store.put(nodeRecordKey("b"), formatNodeRecord(nodeRecord({ node: "b", addr: "10.9.9.9:1" })));
  expect((await directory.find("b"))?.addr).toBe("10.9.9.9:1");
  expect(store.calls).toEqual(["list nodes/", "get nodes/b.json"]);
  await store.delete("nodes/a.json");
  expect(await directory.find("a")).toBeUndefined();
});

it("forget() makes the next question go to the store", async () => {
  const store = storeOf(nodeRecord({ node: "a" }));
  const directory = new NodeDirectory(store, { clock });
  await directory.list();
  directory.forget();
  await directory.list();
  expect(store.calls.filter((call) => call === "list nodes/")).toHaveLength(2);
});

it("picks one live node after the other, but not those that are no choice", async () => {
  const store = storeOf(
    nodeRecord({ node: "a" }),
    nodeRecord({ node: "b" }),
    nodeRecord({ node: "c" }),
    nodeRecord({ node: "dead", expiresMs: 1 }),
    nodeRecord({ node: "homeless", addr: "" }),
    nodeRecord({ node: "old", peerProtocol: 2 }),
  );
  const directory = new NodeDirectory(store, { clock });
  const picked: string[] = [];
  for (let i = 0; i < 4; i += 1)
    picked.push((await directory.pick({ except: new Set(["c"]), peerProtocol: 5 })).node);
  expect(picked).toEqual(["a", "b", "a", "b"]);
});

it("a fleet without a node to call is told, with how many live ones there are", async () => {
  const directory = new NodeDirectory(storeOf(nodeRecord({ node: "a", peerProtocol: 2 })), { clock });
  await expect(directory.pick({ peerProtocol: 5 })).rejects.toThrow(NoLiveNodeError);
  await expect(directory.pick({ peerProtocol: 5 })).rejects.toThrow(/protocol 5 \(1 live\)/);
});

it("finding a node whose record cannot be read says so instead of denying the node", async () => {
  const store = new MemoryStore();
  store.put("nodes/bad.json", "{}");
  await expect(new NodeDirectory(store).find("bad")).rejects.toThrow(NodeRecordError);
});

it("reads the newest records when there are more than its bound, and says that there are more", async () => {
  const store = storeOf(
    nodeRecord({ node: "a-oldest" }),
    nodeRecord({ node: "b-newer" }),
    nodeRecord({ node: "c-newest" }),
  );
  const listing = await new NodeDirectory(store, { clock, maxRecordsCount: 2 }).list();
  expect(listing.live.map(({ node }) => node)).toEqual(["b-newer", "c-newest"]);
  expect(listing.truncated).toBe(true);
  expect(store.calls.filter((call) => call.startsWith("get"))).toHaveLength(2);
});

it("finds a node that the listing left out by its own record", async () => {
  const dead = Array.from({ length: 5 }, (_, i) => nodeRecord({ node: `dead${i}`, expiresMs: 1 }));
  const store = storeOf(nodeRecord({ node: "a" }), nodeRecord({ node: "gone", expiresMs: 1 }), ...dead);
  const directory = new NodeDirectory(store, { clock, maxRecordsCount: 2 });
  expect((await directory.find("a"))?.node).toBe("a");
  expect((await directory.findLive("a"))?.node).toBe("a");
  expect((await directory.find("gone"))?.node).toBe("gone");
  expect(await directory.findLive("gone")).toBeUndefined();
  expect(await directory.find("nobody")).toBeUndefined();
  expect(await directory.find("../fleet/peer-auth")).toBeUndefined();
  store.put("nodes/a.json", "{}");
  await expect(directory.find("a")).rejects.toThrow(NodeRecordError);
});

it("keeps the newest of the whole listing, however many names come before", async () => {
  const store = storeOf(
    ...Array.from({ length: 11_000 }, (_, i) => nodeRecord({ node: `dead${i}`, expiresMs: 1 })),
    nodeRecord({ node: "live" }),
  );
  const listing = await new NodeDirectory(store, { clock, maxRecordsCount: 3 }).list();
  expect(listing.live.map(({ node }) => node)).toEqual(["live"]);
  expect(listing.truncated).toBe(true);
});

it("a record over the size that the store refuses is unreadable, the others are read", async () => {
  const store = storeOf(nodeRecord({ node: "a" }), nodeRecord({ node: "huge" }));
  store.before = (call) => {
    if (call === "get nodes/huge.json")
      throw Object.assign(new StoreFailure("too large"), { code: "CELLKIT_BUCKET_TOO_LARGE" });
  };
  const listing = await new NodeDirectory(store, { clock }).list();
  expect(listing.live.map(({ node }) => node)).toEqual(["a"]);
  expect(listing.unreadable).toEqual([{ key: "nodes/huge.json", reason: "has over 65536 bytes" }]);
});

it("a store that is away fails the question, and the next one asks it again", async () => {
  const store = storeOf(nodeRecord({ node: "a" }));
  const directory = new NodeDirectory(store, { clock });
  store.away = true;
  await expect(directory.list()).rejects.toThrow(StoreFailure);
  store.away = false;
  expect((await directory.list()).live).toHaveLength(1);
});

it("one caller's abort ends its own waiting only", async () => {
  const store = storeOf(nodeRecord({ node: "a" }));
  const directory = new NodeDirectory(store, { clock });
  const aborting = new AbortController();
  const left = directory.list({ signal: aborting.signal });
  const stays = directory.list();
  aborting.abort(new StoreFailure("given up"));
  await expect(left).rejects.toThrow("given up");
  expect((await stays).live).toHaveLength(1);
});

describe("options out of their range", () => {
  it.each([
    { cacheMs: 1_001 },
    { cacheMs: -1 },
    { cacheMs: Number.NaN },
    { maxRecordsCount: 0 },
    { maxRecordsCount: 10_001 },
  ])("%o", (options) => {
    expect(() => new NodeDirectory(new MemoryStore(), options)).toThrow(PeerOptionError);
  });
});

it("picks a node that starts or is being stopped only when there is no other", async () => {
  const leaving = nodeRecord({ node: "leaving", serving: false });
  const directory = new NodeDirectory(storeOf(leaving, nodeRecord({ node: "staying" })), { clock });
  const picked = await Promise.all([1, 2, 3, 4].map(() => directory.pick()));
  expect(new Set(picked.map(({ node }) => node))).toEqual(new Set(["staying"]));
  expect((await directory.pick({ except: new Set(["staying"]) })).node).toBe("leaving");
});
