import type { Bucket } from "@cellkit/bucket";
import { PeerClient, publishNextKey, readRotation, requireFleetKeys, signWithNextKey } from "@cellkit/peer";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { RotationWaitError } from "../src/errors.ts";
import { rotateKey } from "../src/rotate-key.ts";
import { directoryBucket, PeerNode, type PeerNodeOptions } from "./support/peer-node.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let bucket: Bucket;
const nodes: PeerNode[] = [];
beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  ({ bucket } = directoryBucket(`${directory.path}/bucket`));
});
afterEach(async () => {
  for (const node of nodes.splice(0)) await node[Symbol.asyncDispose]();
  await bucket.close();
  await directory.remove();
});

const start = async (name: string, options: PeerNodeOptions = {}): Promise<PeerNode> => {
  const node = await PeerNode.start(bucket, name, options);
  nodes.push(node);
  return node;
};
const walk = (lines: string[] = [], given: Partial<Parameters<typeof rotateKey>[1]> = {}) =>
  rotateKey(bucket, {
    stepTimeoutMs: 60_000,
    settleMs: 50,
    graceMs: 50,
    lookMs: 50,
    onProgress: (line) => lines.push(line),
    ...given,
  });
const nobody = { live: [], expired: [], unreadable: [], truncated: false };

it("a fleet under load takes another key, and no call fails", { timeout: 180_000 }, async () => {
  await start("a", { onFetch: (_request, response) => void response.end("a") });
  await start("b", { onFetch: (_request, response) => void response.end("b") });
  const before = (await readRotation(bucket)).current;
  let stopped = false;
  let calls = 0;
  const failures: unknown[] = [];
  /** As a node calls: a tunnel of its own for each call, signed with the key that signs at that moment. */
  const load = nodes.map(async ({ keyring }) => {
    while (!stopped) {
      await using client = new PeerClient({
        store: bucket,
        key: () => keyring.keys[0],
        self: "load",
        script: "app",
        idleCount: 0,
      });
      try {
        await (await client.fetch({ className: "Room", name: "x" }, "http://cell/")).text();
        calls += 1;
      } catch (error) {
        failures.push(error);
      }
    }
  });
  const lines: string[] = [];
  const more = async () => {
    const wanted = calls + 10;
    await until("further calls", () => calls >= wanted || failures.length > 0);
  };
  await more();
  // Longer than a call takes on a busy machine: one that the old key signed is cut with it.
  const state = await walk(lines, { graceMs: 2_500 });
  await more();
  stopped = true;
  await Promise.all(load);
  expect(failures).toEqual([]);
  expect(state.phase).toBe("none");
  expect(state.current).not.toBe(before);
  expect(nodes.map(({ keyring }) => keyring.shown)).toEqual(
    nodes.map(() => ({ signs: state.current, accepts: [state.current] })),
  );
  expect(lines.filter((line) => line.startsWith("step"))).toHaveLength(4);
  expect(lines).toContain("2 nodes took a request signed with the next key");
});

it("a node that does not follow holds it back; the fleet works on, and the next walk ends it once the node is gone", async () => {
  await start("a");
  const foreign = await start("foreign", { silent: true });
  const failing = walk([], { stepTimeoutMs: 0 });
  await expect(failing).rejects.toThrow(RotationWaitError);
  await expect(failing).rejects.toThrow(/foreign does not show its keys/);
  expect((await readRotation(bucket)).phase).toBe("accept");
  await foreign[Symbol.asyncDispose]();
  nodes.pop();
  const lines: string[] = [];
  expect((await walk(lines)).phase).toBe("none");
  expect(lines[0]).toMatch(/is at accept: going on$/);
});

it("a node whose record shows a key that it does not take is found out before anything is signed with it", async () => {
  const liar = await start("liar", { refreshMs: 30_000 });
  const { keyring } = liar;
  const before = keyring.keys;
  await publishNextKey(bucket);
  await keyring.refresh();
  await liar.registration.renew();
  // Its record says both keys; from here on it takes one.
  Object.defineProperty(keyring, "keys", { get: () => before });
  await expect(walk()).rejects.toThrow(/liar refuses what the next key signed/);
  expect((await readRotation(bucket)).phase).toBe("accept");
});

it.each(["accept", "sign"] as const)("a walk that was broken off at %s is taken up there", async (phase) => {
  await start("a");
  const { next } = await publishNextKey(bucket);
  if (phase === "sign") await signWithNextKey(bucket, nobody);
  expect((await walk()).current).toBe(next);
  expect((await requireFleetKeys(bucket)).keys).toHaveLength(1);
});

it("an abort ends the walk where it is", async () => {
  await start("a");
  const aborting = new AbortController();
  const lines: string[] = [];
  const failing = walk(lines, {
    settleMs: 60_000,
    signal: aborting.signal,
    onProgress: (line) => {
      lines.push(line);
      if (line === "1 node followed") aborting.abort(new DOMException("ended", "AbortError"));
    },
  });
  await expect(failing).rejects.toThrow(/abort|ended/);
  expect((await readRotation(bucket)).phase).toBe("accept");
});
