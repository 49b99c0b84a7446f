import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import {
  FleetKeyError,
  FleetKeyMissingError,
  FleetKeyUncertainError,
  KeyRotationError,
} from "../src/errors.ts";
import {
  createOrLoadFleetKey,
  fleetKeyKey,
  keyFingerprint,
  loadFleetKeys,
  requireFleetKeys,
} from "../src/fleet-keys.ts";
import { keyRotationKey } from "../src/key-rotation-record.ts";
import { MemoryStore, StoreFailure } from "./support/memory-store.ts";

const hex = (digit: string): string => digit.repeat(64);
const keyText = (digit: string): string => `{"version":1,"key":"${hex(digit)}"}`;
/** Keys made in a test are 32 times this byte. */
const random = (byte: number) => (count: number) => new Uint8Array(count).fill(byte);

it("the first node makes the key, byte for byte as every node reads it", async () => {
  const store = new MemoryStore();
  const { keys } = await createOrLoadFleetKey(store, { random: random(0xaa) });
  expect(store.text(fleetKeyKey)).toBe(keyText("a"));
  expect(keys).toHaveLength(1);
});

it("a later node uses the key that is there, and writes nothing", async () => {
  const store = new MemoryStore();
  store.put(fleetKeyKey, keyText("b"));
  const { keys } = await createOrLoadFleetKey(store, { random: random(0xaa) });
  expect(Buffer.from(keys[0].reveal()).toString("hex")).toBe(hex("b"));
  expect(store.calls.some((call) => call.startsWith("create"))).toBe(false);
});

it("of many nodes that start at once all use one key", async () => {
  const store = new MemoryStore();
  const all = await Promise.all(Array.from({ length: 20 }, () => createOrLoadFleetKey(store)));
  expect(new Set(all.map(({ keys }) => keyFingerprint(keys[0]))).size).toBe(1);
});

it("the loser of the race uses the winner's key", async () => {
  const store = new MemoryStore();
  store.before = (call) => {
    if (call === `create ${fleetKeyKey}`) store.put(fleetKeyKey, keyText("b"));
  };
  const { keys } = await createOrLoadFleetKey(store, { random: random(0xaa) });
  expect(Buffer.from(keys[0].reveal()).toString("hex")).toBe(hex("b"));
});

it("a winner's key that is gone when the loser looks is fatal", async () => {
  const store = new MemoryStore();
  store.before = (call) => {
    if (call === `create ${fleetKeyKey}`) store.put(fleetKeyKey, keyText("b"));
    else if (store.calls.at(-1) === `create ${fleetKeyKey}`) store.objects.delete(fleetKeyKey);
  };
  await expect(createOrLoadFleetKey(store)).rejects.toThrow(FleetKeyMissingError);
});

describe("a write without an answer", () => {
  it.each(["answer lost", "request lost"] as const)(
    "(%s) counts once reading back proves it",
    async (fault) => {
      const store = new MemoryStore();
      store.fail(fleetKeyKey, fault);
      await createOrLoadFleetKey(store, { random: random(0xaa) });
      expect(store.text(fleetKeyKey)).toBe(keyText("a"));
    },
  );

  it.each(["answer lost", "request lost"] as const)("(%s) is fatal when nothing proves it", async (fault) => {
    const store = new MemoryStore();
    store.settles = false;
    store.fail(fleetKeyKey, fault);
    const failing = createOrLoadFleetKey(store);
    await expect(failing).rejects.toThrow(FleetKeyUncertainError);
    await expect(failing).rejects.toMatchObject({ cause: expect.any(StoreFailure) });
  });

  it("that lost the race uses the winner's key", async () => {
    const store = new MemoryStore();
    store.before = (call) => {
      if (call !== `create ${fleetKeyKey}`) return;
      store.fail(fleetKeyKey, "request lost");
      store.put(fleetKeyKey, keyText("b"));
    };
    const { keys } = await createOrLoadFleetKey(store, { random: random(0xaa) });
    expect(Buffer.from(keys[0].reveal()).toString("hex")).toBe(hex("b"));
  });
});

it("any other failure of the write is fatal as it is", async () => {
  const store = new MemoryStore();
  store.fail(fleetKeyKey, "unreachable");
  await expect(createOrLoadFleetKey(store)).rejects.toThrow(StoreFailure);
});

it.each([
  "",
  "{}",
  '{"version":1,"key":"AA"}',
  `{"version":1,"key":"${hex("b")}","more":1}`,
  "x".repeat(5_000),
])("an invalid object (%#) is fatal, shown to nobody and never overwritten", async (text) => {
  const store = new MemoryStore();
  store.put(fleetKeyKey, text);
  const failing = createOrLoadFleetKey(store);
  await expect(failing).rejects.toThrow(FleetKeyError);
  expect(inspect(await failing.catch((error: unknown) => error))).not.toContain(hex("b"));
  expect(store.text(fleetKeyKey)).toBe(text);
});

it("a tool never makes a key", async () => {
  const store = new MemoryStore();
  expect(await loadFleetKeys(store)).toBeUndefined();
  await expect(requireFleetKeys(store)).rejects.toThrow(/start a node first/);
  expect(store.objects.size).toBe(0);
});

describe("during a rotation", () => {
  const rotation = (phase: string, previous = "a", next = "b"): string =>
    JSON.stringify({ version: 1, phase, rotation: "0".repeat(32), key: hex(next), previous: hex(previous) });

  it.each([
    ["accept", "a", ["a", "b"]],
    ["sign", "a", ["b", "a"]],
    ["sign", "b", ["b", "a"]],
    ["retire", "b", ["b", "a"]],
  ])("in phase %s with key %s, the keys are %s, the first signing", async (phase, current, expected) => {
    const store = new MemoryStore();
    store.put(fleetKeyKey, keyText(current));
    store.put(keyRotationKey, rotation(phase));
    const { keys } = await requireFleetKeys(store);
    expect(keys.map((key) => Buffer.from(key.reveal()).toString("hex"))).toEqual(expected.map(hex));
  });

  it.each([
    ["accept", "b"],
    ["accept", "c"],
    ["sign", "c"],
    ["retire", "a"],
  ])(
    "a key that somebody else put there (phase %s, key %s) is an error, not a guess",
    async (phase, current) => {
      const store = new MemoryStore();
      store.put(fleetKeyKey, keyText(current));
      store.put(keyRotationKey, rotation(phase));
      await expect(requireFleetKeys(store)).rejects.toThrow(KeyRotationError);
    },
  );

  it("two objects that were read at different moments of it are read again", async () => {
    const store = new MemoryStore();
    store.put(fleetKeyKey, keyText("a"));
    store.put(keyRotationKey, rotation("accept"));
    store.before = (call) => {
      if (call !== `get ${fleetKeyKey}` || store.text(fleetKeyKey) === keyText("b")) return;
      store.put(fleetKeyKey, keyText("b"));
      store.put(keyRotationKey, rotation("retire"));
    };
    const { keys } = await requireFleetKeys(store);
    expect(Buffer.from(keys[0].reveal()).toString("hex")).toBe(hex("b"));
  });

  it("once it is done, its trace changes nothing", async () => {
    const store = new MemoryStore();
    store.put(fleetKeyKey, keyText("b"));
    store.put(keyRotationKey, JSON.stringify({ version: 1, phase: "done", rotation: "0".repeat(32) }));
    expect((await requireFleetKeys(store)).keys).toHaveLength(1);
  });

  it("a fleet without its key does not begin a new one", async () => {
    const store = new MemoryStore();
    store.put(keyRotationKey, rotation("sign"));
    await expect(createOrLoadFleetKey(store)).rejects.toThrow(FleetKeyMissingError);
  });

  it.each([
    ["no JSON", "{"],
    ["an unknown phase", rotation("later")],
    ["a key that replaces itself", rotation("accept", "a", "a")],
    ["an unknown member", `${rotation("accept").slice(0, -1)},"more":1}`],
    [
      "a trace that still has a key",
      JSON.stringify({ version: 1, phase: "done", rotation: "0".repeat(32), key: hex("b") }),
    ],
    ["another version", rotation("accept").replace(":1", ":2")],
  ])("an invalid object (%s) is fatal and shown to nobody", async (_, text) => {
    const store = new MemoryStore();
    store.put(fleetKeyKey, keyText("a"));
    store.put(keyRotationKey, text);
    const error = await requireFleetKeys(store).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(KeyRotationError);
    expect(inspect(error)).not.toMatch(/[ab]{32}/);
  });
});

it("a fingerprint tells keys apart and shows none of it", async () => {
  const store = new MemoryStore();
  store.put(fleetKeyKey, keyText("a"));
  const { current } = await requireFleetKeys(store);
  expect(keyFingerprint(current.key)).toMatch(/^[0-9a-f]{16}$/);
  expect(keyFingerprint(current.key)).not.toBe("a".repeat(16));
});
