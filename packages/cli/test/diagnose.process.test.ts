// `cellkit diagnose` against nodes that listen, on a bucket in a directory.
import { writeFile } from "node:fs/promises";
import type { Bucket } from "@cellkit/bucket";
import { FleetKey, fleetKeyKey, formatFleetKey, formatNodeRecord, nodeRecordKey } from "@cellkit/peer";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "./support/command.ts";
import { directoryBucket, PeerNode, type PeerNodeOptions } from "./support/peer-node.ts";
import { TemporaryDirectory } from "./support/project.ts";

const rightKey = new FleetKey(new Uint8Array(32).fill(1));
const wrongKey = new FleetKey(new Uint8Array(32).fill(2));

let directory: TemporaryDirectory;
let bucket: Bucket;
let url: string;
const nodes: PeerNode[] = [];
beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  ({ bucket, url } = directoryBucket(`${directory.path}/bucket`));
  await bucket.createIfAbsent(fleetKeyKey, formatFleetKey(rightKey));
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
const keyFile = async (text: string): Promise<string> => {
  const path = `${directory.path}/key`;
  await writeFile(path, text, { mode: 0o600 });
  return path;
};

it("a fleet that serves: a row a node, one that is being stopped is no trouble, and the code is 0", async () => {
  await start("node-a");
  await start("node-b", { draining: true });
  const { code, stdout, stderr } = await run(["diagnose", "--bucket", url]);
  expect(stdout[0]).toMatch(/^NODE {4}ADDRESS +STATE +PROTOCOL {2}CLOCK {2}ANSWERED {2}DETAIL$/);
  expect(stdout.slice(1)).toEqual([
    // The clock is read off an answer: one that comes a second late shows it off by as much.
    expect.stringMatching(/^node-a {2}127\.0\.0\.1:\d+ +ready +5 {9}(?:same|-?\d s) +\d+ ms +it serves$/),
    expect.stringMatching(
      /^node-b {2}127\.0\.0\.1:\d+ +draining +5 {9}(?:same|-?\d s) +\d+ ms +it is being stopped$/,
    ),
  ]);
  expect(stderr).toEqual([]);
  expect(code).toBe(0);
});

it("trouble: each node with what is wrong with it, and the code is 3", async () => {
  await start("good");
  await start("foreign", { keys: [wrongKey] });
  const dead = await start("dead");
  dead.kill();
  nodes.splice(nodes.indexOf(dead), 1);
  await bucket.put("nodes/odd.json", "{}");
  const old = { node: "old", addr: "10.0.0.1:1", peerProtocol: 5, probePublicKey: "", extensions: [] };
  await bucket.put(nodeRecordKey("old"), formatNodeRecord({ ...old, expiresMs: 1 }));
  const { code, stdout, stderr } = await run(["diagnose", "--json"], { CELLD_BUCKET: url });
  const found = JSON.parse(stdout.join("\n"));
  expect(
    Object.fromEntries(
      found.nodes.map(({ node, verdict }: { node: string; verdict: string }) => [node, verdict]),
    ),
  ).toEqual({ good: "ready", foreign: "wrong-key", dead: "unreachable" });
  expect(found).toMatchObject({
    unreadable: [{ key: "nodes/odd.json" }],
    olderCount: 1,
    truncated: false,
    rotation: "none",
  });
  expect(stderr).toEqual(["1 records of nodes that stopped long ago were left out"]);
  expect(code).toBe(3);
  await dead[Symbol.asyncDispose]();
});

describe("one node", () => {
  it("by its name", async () => {
    await start("node-a");
    await start("node-b");
    const { code, stdout } = await run(["diagnose", "--bucket", url, "--peer", "node-b"]);
    expect(stdout).toHaveLength(2);
    expect(stdout[1]).toMatch(/^node-b /);
    expect(code).toBe(0);
  });

  it("by a name that no record has: the table says so, beside what was found of the others", async () => {
    await start("node-a");
    const args = ["diagnose", "--bucket", url, "--peer", "node-9", "--peer", "node-a"];
    const { code, stdout } = await run(args);
    expect(stdout.slice(1)).toEqual([
      expect.stringMatching(/^node-a .* ready /),
      expect.stringMatching(/^node-9 {2}- +unreachable .* no such node in the bucket; it has node-a$/),
    ]);
    expect(code).toBe(3);
  });

  it.each([
    ["the right key", formatFleetKey(rightKey), "ready", 0],
    ["the right key in hex", "01".repeat(32), "ready", 0],
    ["another key", formatFleetKey(wrongKey), "wrong-key", 3],
  ])("by its address and a file with %s", async (_, text, state, expected) => {
    const { addr } = await start("node-a");
    const { code, stdout } = await run(["diagnose", "--peer", addr, "--key-file", await keyFile(text)]);
    expect(stdout[1]).toMatch(new RegExp(`^node-a +${addr} +${state} `));
    expect(code).toBe(expected);
  });

  it("by its address alone: what is open is looked at, and it is said that the rest was not", async () => {
    const { addr } = await start("node-a");
    const { code, stdout } = await run(["diagnose", "--peer", addr]);
    expect(stdout[1]).toMatch(/ready .*its key and its identity were not checked$/);
    expect(code).toBe(0);
  });
});

describe("the code is", () => {
  it("3 when no node has a record", async () => {
    const { code, stderr } = await run(["diagnose", "--bucket", url]);
    expect(stderr).toEqual(["no node: none has a record in this bucket"]);
    expect(code).toBe(3);
  });

  it("2 with neither a bucket nor an address", async () => {
    const { code, stderr } = await run(["diagnose"]);
    expect(stderr[0]).toMatch(/--bucket.*is needed, or --peer HOST:PORT/);
    expect(code).toBe(2);
  });

  it("2 for a name without a bucket", async () => {
    const { code, stderr } = await run(["diagnose", "--peer", "node-a"]);
    expect(stderr[0]).toMatch(/must be HOST:PORT without --bucket/);
    expect(code).toBe(2);
  });

  it("2 for an address without a port", async () => {
    for (const address of ["127.0.0.1", "[::1]"]) {
      const { code, stderr } = await run(["diagnose", "--bucket", url, "--peer", address]);
      expect(stderr[0]).toContain(`${JSON.stringify(address)} has no port`);
      expect(code).toBe(2);
    }
  });

  it("2 for a key file that is not there", async () => {
    const { code, stderr } = await run([
      "diagnose",
      "--peer",
      "127.0.0.1:1",
      "--key-file",
      "/nonexistent/key",
    ]);
    expect(stderr[0]).toMatch(/--key-file: .*\/nonexistent\/key/);
    expect(code).toBe(2);
  });

  it("2 for a file that holds no key, of which nothing is shown", async () => {
    const path = await keyFile("AB".repeat(32));
    const { code, stderr } = await run(["diagnose", "--peer", "127.0.0.1:1", "--key-file", path]);
    expect(stderr).toEqual([
      `cellkit diagnose: ${path} holds no fleet key; give it the object fleet/peer-auth.json, or its 64 hex digits`,
    ]);
    expect(code).toBe(2);
  });

  it("1 for a bucket without a fleet", async () => {
    const { code, stderr } = await run(["diagnose", "--bucket", `file://${directory.path}/empty`]);
    expect(stderr[0]).toMatch(/the fleet has no fleet\/peer-auth\.json; start a node first/);
    expect(code).toBe(1);
  });
});

describe("peer rotate", () => {
  it("replaces the key, says each step, and prints the new key's fingerprint", async () => {
    await start("node-a");
    const args = ["peer", "rotate", "--bucket", url, "--settle-ms", "0", "--grace-ms", "0"];
    const { code, stdout, stderr } = await run(args);
    expect(stdout).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/)]);
    expect(stderr.filter((line) => line.startsWith("step"))).toEqual([
      expect.stringMatching(/^step 1 of 4: a second key beside [0-9a-f]{16}, to be accepted by all nodes$/),
      `step 2 of 4: ${stdout[0]} signs`,
      `step 3 of 4: ${stdout[0]} becomes the fleet's key`,
      expect.stringMatching(/^step 4 of 4: [0-9a-f]{16} is refused from now on$/),
    ]);
    expect(stderr.join("\n")).not.toMatch(/[0-9a-f]{17}/);
    expect(code).toBe(0);
    expect((await run(["peer", "rotate", "--status", "--bucket", url])).stdout).toEqual([
      `key ${stdout[0]}, rotation none`,
    ]);
  });

  it("a node that does not follow: code 3, and --status tells which", async () => {
    await start("foreign", { silent: true });
    const { code, stderr } = await run(["peer", "rotate", "--bucket", url, "--step-timeout-ms", "0"]);
    expect(stderr.at(-1)).toMatch(/stays at accept after 0 s: foreign does not show its keys/);
    expect(code).toBe(3);
    const status = await run(["peer", "rotate", "--status", "--bucket", url]);
    expect(status.stdout).toEqual([
      expect.stringMatching(/^key [0-9a-f]{16}, rotation accept$/),
      "foreign does not show its keys, so it cannot follow",
    ]);
    expect(status.code).toBe(3);
  });
});
