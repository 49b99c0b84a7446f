import { afterEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import {
  NodeRecordError,
  NodeRecordLostError,
  NodeRecordUncertainError,
  PeerOptionError,
} from "../src/errors.ts";
import { formatNodeRecord, type NodeRecord, nodeRecordKey, parseNodeRecord } from "../src/node-record.ts";
import { type NodeRegistration, type RegisterNodeOptions, registerNode } from "../src/node-registration.ts";
import { MemoryStore, StoreFailure } from "./support/memory-store.ts";
import { description, nodeRecord } from "./support/node-record.ts";

const key = nodeRecordKey("node-a");
const open: NodeRegistration[] = [];
afterEach(async () => {
  for (const registration of open.splice(0)) await registration.close().catch(() => {});
});

async function register(
  store: MemoryStore,
  options: RegisterNodeOptions = {},
  given = {},
): Promise<NodeRegistration> {
  const registration = await registerNode(store, () => description({ node: "node-a", ...given }), options);
  open.push(registration);
  return registration;
}
const there = (store: MemoryStore): NodeRecord | undefined => {
  const object = store.objects.get(key);
  return object === undefined ? undefined : parseNodeRecord(key, object.body);
};
const other = formatNodeRecord(nodeRecord({ node: "node-a", probePublicKey: "cd".repeat(32) }));

it("a node's record is there from its registration to its close", async () => {
  const store = new MemoryStore();
  const registration = await register(store, { clock: () => 1_000, ttlMs: 600_000 });
  expect(there(store)).toEqual({ ...description({ node: "node-a" }), expiresMs: 601_000 });
  expect(registration.live).toBe(true);
  await registration.close();
  expect(store.objects.size).toBe(0);
  expect(registration.live).toBe(false);
});

it("the record of a former process of that name is replaced at once", async () => {
  const store = new MemoryStore();
  store.put(key, other);
  await register(store);
  expect(there(store)?.probePublicKey).toBe("ab".repeat(32));
});

it("a damaged record does not keep its node from starting", async () => {
  const store = new MemoryStore();
  store.put(key, "{");
  await register(store);
  expect(there(store)?.node).toBe("node-a");
});

it("the record is renewed by itself, each time with what the node says then", async () => {
  const store = new MemoryStore();
  const failures: unknown[] = [];
  let nowMs = 0;
  await register(store, {
    ttlMs: 1_000,
    clock: () => (nowMs += 10),
    onFailure: (error) => failures.push(error),
  });
  await until("third write", () => (there(store)?.expiresMs ?? 0) >= 1_030);
  expect(failures).toEqual([]);
});

it("renew() writes at once", async () => {
  const store = new MemoryStore();
  let roadAlias = "127.1.1.1";
  const registration = await registerNode(store, () => description({ node: "node-a", roadAlias }));
  open.push(registration);
  roadAlias = "127.2.2.2";
  await Promise.all([registration.renew(), registration.renew()]);
  expect(there(store)?.roadAlias).toBe("127.2.2.2");
});

it.each(["answer lost", "request lost"] as const)("a renewal whose %s goes on", async (fault) => {
  const store = new MemoryStore();
  let nowMs = 0;
  const registration = await register(store, { ttlMs: 600_000, clock: () => (nowMs += 1) });
  store.fail(key, fault);
  await registration.renew();
  expect(there(store)?.expiresMs).toBe(600_003);
  await registration.renew();
  expect(there(store)?.expiresMs).toBe(600_004);
});

it("a record that was removed is written again: it is advisory", async () => {
  const store = new MemoryStore();
  const registration = await register(store);
  await store.delete(key);
  await registration.renew();
  expect(there(store)?.node).toBe("node-a");
});

it("a record that another process wrote over is left alone, told once, and never renewed again", async () => {
  const store = new MemoryStore();
  const lost: Error[] = [];
  const registration = await register(store, { ttlMs: 1_000, onLost: (error) => lost.push(error) });
  store.put(key, other);
  await until("loss", () => lost.length > 0);
  expect(registration.live).toBe(false);
  await expect(registration.renew()).rejects.toThrow(NodeRecordLostError);
  await registration.close();
  expect(store.text(key)).toBe(other);
  expect(lost).toEqual([expect.any(NodeRecordLostError)]);
});

it("a store that is away is told of, and the record comes back with the store", async () => {
  const store = new MemoryStore();
  const failures: unknown[] = [];
  let nowMs = 0;
  await register(store, {
    ttlMs: 1_000,
    clock: () => (nowMs += 1),
    onFailure: (error) => failures.push(error),
  });
  store.away = true;
  await until("failed renewal", () => failures.length > 0);
  expect(failures[0]).toBeInstanceOf(StoreFailure);
  store.away = false;
  const before = there(store)?.expiresMs ?? 0;
  await until("renewal", () => (there(store)?.expiresMs ?? 0) > before);
});

it("a record ends to be live by the monotonic clock when no renewal succeeds", async () => {
  const store = new MemoryStore();
  const registration = await register(store, { ttlMs: 1_000 });
  store.away = true;
  await until("end of life", () => !registration.live);
  store.away = false;
});

it("close leaves a successor's record alone", async () => {
  const store = new MemoryStore();
  const registration = await register(store);
  store.put(key, other);
  await registration.close();
  expect(store.text(key)).toBe(other);
});

it("close after a lost answer still takes the record away", async () => {
  const store = new MemoryStore();
  const registration = await register(store);
  store.fail(key, "answer lost");
  await registration.close();
  expect(store.objects.size).toBe(0);
  await registration.close();
});

it("a first write that stays unsure is an error, not a registration", async () => {
  const store = new MemoryStore();
  for (let i = 0; i < 4; i += 1) store.fail(key, "request lost");
  await expect(register(store)).rejects.toThrow(NodeRecordUncertainError);
});

it("an aborted registration ends with the signal's reason", async () => {
  const reason = new StoreFailure("stopped");
  await expect(register(new MemoryStore(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

it.each([999, 3_600_001, 1_000.5])("a life of %s ms is refused", async (ttlMs) => {
  await expect(register(new MemoryStore(), { ttlMs })).rejects.toThrow(PeerOptionError);
});

it.each([{ addr: "nowhere" }, { node: "a/b" }, { extensions: ["Records 1"] }])(
  "what readers would refuse is not written: %o",
  async (given) => {
    const store = new MemoryStore();
    await expect(registerNode(store, () => description({ node: "node-a", ...given }))).rejects.toThrow(
      NodeRecordError,
    );
    expect(store.calls).toEqual([]);
  },
);
