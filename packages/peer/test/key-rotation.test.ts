import { describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { FleetKeyUncertainError, KeyRotationError, KeyRotationPendingError } from "../src/errors.ts";
import { openFleetKeyring } from "../src/fleet-keyring.ts";
import { createOrLoadFleetKey, fleetKeyKey, requireFleetKeys } from "../src/fleet-keys.ts";
import {
  dropOldKey,
  laggingNodes,
  promoteNextKey,
  publishNextKey,
  readRotation,
  signWithNextKey,
} from "../src/key-rotation.ts";
import { keyRotationKey } from "../src/key-rotation-record.ts";
import type { NodeListing } from "../src/node-directory.ts";
import type { ShownKeys } from "../src/node-record.ts";
import { MemoryStore } from "./support/memory-store.ts";
import { nodeRecord } from "./support/node-record.ts";

async function fleet(): Promise<MemoryStore> {
  const store = new MemoryStore();
  await createOrLoadFleetKey(store);
  return store;
}
const nobody: NodeListing = { live: [], expired: [], unreadable: [], truncated: false };
const nodes = (...shown: Array<ShownKeys | undefined>): NodeListing => ({
  ...nobody,
  live: shown.map((peerKeys, index) => nodeRecord({ node: `node-${index}`, peerKeys })),
});
const steps = { accept: signWithNextKey, sign: promoteNextKey, retire: dropOldKey } as const;

it("the four steps, in their order, leave one key, which is another one", async () => {
  const store = await fleet();
  const before = await readRotation(store);
  expect(before).toMatchObject({ phase: "none", next: undefined, previous: undefined });
  const published = await publishNextKey(store);
  expect(published).toMatchObject({ phase: "accept", current: before.current, previous: before.current });
  const signing = await signWithNextKey(store, nobody);
  expect(signing).toMatchObject({ phase: "sign", current: before.current });
  const promoted = await promoteNextKey(store, nobody);
  expect(promoted).toMatchObject({ phase: "retire", current: published.next, previous: before.current });
  const done = await dropOldKey(store, nobody);
  expect(done).toEqual({ phase: "none", current: published.next, next: undefined, previous: undefined });
  expect((await requireFleetKeys(store)).keys).toHaveLength(1);
});

it("what is left of a rotation holds no key, and the next one begins on it", async () => {
  const store = await fleet();
  const walk = async (): Promise<void> => {
    await publishNextKey(store);
    for (const step of Object.values(steps)) await step(store, nobody);
  };
  await walk();
  const left = store.text(keyRotationKey);
  expect(left).not.toMatch(/[0-9a-f]{33}/);
  await walk();
  expect(store.text(keyRotationKey)).not.toBe(left);
});

describe("a step out of its order is refused and changes nothing", () => {
  it.each([
    ["none", "accept"],
    ["none", "sign"],
    ["none", "retire"],
    ["accept", "sign"],
    ["accept", "retire"],
    ["sign", "accept"],
    ["sign", "retire"],
    ["retire", "accept"],
    ["retire", "sign"],
  ] as const)("at %s, the step after %s", async (at, step) => {
    const store = at === "none" ? await fleet() : await fleetAt(at);
    const before = store.text(keyRotationKey);
    await expect(steps[step](store, nobody)).rejects.toThrow(KeyRotationError);
    expect(store.text(keyRotationKey)).toBe(before);
  });

  it.each(["accept", "sign", "retire"] as const)("a second rotation at %s", async (at) => {
    await expect(publishNextKey(await fleetAt(at))).rejects.toThrow(/under way/);
  });
});

async function fleetAt(phase: "accept" | "sign" | "retire"): Promise<MemoryStore> {
  const store = await fleet();
  await publishNextKey(store);
  if (phase !== "accept") await signWithNextKey(store, nobody);
  if (phase === "retire") await promoteNextKey(store, nobody);
  return store;
}

describe("a node that has not followed holds the step back", () => {
  const [old, next] = ["0".repeat(16), "1".repeat(16)];
  const state = (phase: "accept" | "sign" | "retire") => ({ phase, current: old, next, previous: old });
  const both = [old, next];
  it.each<[string, "accept" | "sign" | "retire", ShownKeys | undefined, RegExp | undefined]>([
    ["at accept, accepts the old key only", "accept", { signs: old, accepts: [old] }, /does not accept/],
    ["at accept, accepts both", "accept", { signs: old, accepts: both }, undefined],
    ["at sign, signs with the old key", "sign", { signs: old, accepts: both }, /does not sign/],
    ["at sign, signs with the next key", "sign", { signs: next, accepts: both }, undefined],
    ["at retire, signs with the old key", "retire", { signs: old, accepts: both }, /does not sign/],
    ["at retire, accepts the next key only", "retire", { signs: next, accepts: [next] }, undefined],
    ["shows nothing", "accept", undefined, /does not show its keys/],
  ])("%s", (_, phase, shown, reason) => {
    const lagging = laggingNodes(state(phase), nodes(shown), 0);
    expect(lagging).toEqual(
      reason === undefined ? [] : [{ node: "node-0", reason: expect.stringMatching(reason) }],
    );
  });

  it("also one whose record ran out within the clocks' window, but not one that is gone for longer", () => {
    const expired = [
      nodeRecord({ node: "behind", expiresMs: 70_001 }),
      nodeRecord({ node: "dead", expiresMs: 70_000 }),
    ];
    const lagging = laggingNodes(state("accept"), { ...nobody, expired }, 100_000);
    expect(lagging.map(({ node }) => node)).toEqual(["behind"]);
  });

  it("also one whose record cannot be read, and those that were not looked at", () => {
    const listing = {
      ...nobody,
      unreadable: [{ key: "nodes/x.json", reason: "is not JSON" }],
      truncated: true,
    };
    expect(laggingNodes(state("sign"), listing, 0)).toHaveLength(2);
  });

  it.each(["accept", "sign", "retire"] as const)(
    "the step after %s throws with its name and writes nothing",
    async (at) => {
      const store = await fleetAt(at);
      const before = [store.text(keyRotationKey), store.text(fleetKeyKey)];
      const failing = steps[at](store, nodes(undefined));
      await expect(failing).rejects.toThrow(KeyRotationPendingError);
      await expect(failing).rejects.toMatchObject({ nodes: [{ node: "node-0" }] });
      expect([store.text(keyRotationKey), store.text(fleetKeyKey)]).toEqual(before);
    },
  );
});

it("a promotion that broke off between its two writes is finished by the next try", async () => {
  const store = await fleetAt("sign");
  store.fail(keyRotationKey, "unreachable");
  await expect(promoteNextKey(store, nobody)).rejects.toThrow("refused the connection");
  const between = await readRotation(store);
  expect(between).toMatchObject({ phase: "sign", current: between.next });
  store.calls.length = 0;
  expect((await promoteNextKey(store, nobody)).phase).toBe("retire");
  expect(store.calls.filter((call) => call.startsWith("replace"))).toEqual([`replace ${keyRotationKey}`]);
});

it("of two who rotate, one goes on and the other is told", async () => {
  const store = await fleet();
  const outcomes = await Promise.allSettled([publishNextKey(store), publishNextKey(store)]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({
    reason: expect.any(KeyRotationError),
  });
});

it("a step without an answer counts once reading back proves it, and is fatal otherwise", async () => {
  const store = await fleetAt("accept");
  store.fail(keyRotationKey, "answer lost");
  expect((await signWithNextKey(store, nobody)).phase).toBe("sign");
  store.settles = false;
  store.fail(fleetKeyKey, "answer lost");
  await expect(promoteNextKey(store, nobody)).rejects.toThrow(FleetKeyUncertainError);
});

it("a keyring follows each step by itself, and at no moment two rings do not understand each other", async () => {
  const store = await fleet();
  const changes: ShownKeys[] = [];
  await using fast = await openFleetKeyring(store, {
    refreshMs: 100,
    onChange: (shown) => changes.push(shown),
  });
  await using slow = await openFleetKeyring(store, { refreshMs: 30_000 });
  const understood = (): void => {
    expect(fast.shown.accepts).toContain(slow.shown.signs);
    expect(slow.shown.accepts).toContain(fast.shown.signs);
  };
  const listing = (): NodeListing => nodes(fast.shown, slow.shown);
  const { next } = await publishNextKey(store);
  for (const [index, step] of [signWithNextKey, promoteNextKey, dropOldKey].entries()) {
    if (index < 2) {
      await until("change", () => changes.length === index + 1);
      understood();
      await expect(step(store, listing())).rejects.toThrow(KeyRotationPendingError);
      await slow.refresh();
      understood();
    }
    await step(store, listing());
  }
  await until("last change", () => changes.length === 3);
  expect(changes.at(-1)).toEqual({ signs: next, accepts: [next] });
  understood();
});

it("a keyring keeps its keys while the store is away, and says so", async () => {
  const store = await fleet();
  const failures: unknown[] = [];
  await using ring = await openFleetKeyring(store, {
    refreshMs: 100,
    onFailure: (error) => failures.push(error),
  });
  const before = ring.keys;
  store.away = true;
  await until("failure", () => failures.length > 0);
  expect(ring.keys).toBe(before);
});
