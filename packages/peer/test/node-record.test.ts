import { describe, expect, it } from "vitest";
import { NodeRecordError } from "../src/errors.ts";
import {
  formatNodeRecord,
  isLive,
  type NodeRecord,
  nodeRecordKey,
  parseNodeRecord,
} from "../src/node-record.ts";
import { nodeRecord } from "./support/node-record.ts";

const bytes = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
const parse = (value: unknown, node = "node-a"): NodeRecord =>
  parseNodeRecord(nodeRecordKey(node), bytes(value));

it("a record that was written reads as it was", () => {
  const record = nodeRecord({
    node: "node-a",
    peerKeys: { signs: "00112233445566ff", accepts: ["00112233445566ff", "0011223344556600"] },
    roadAlias: "127.77.0.1",
    serving: false,
  });
  expect(parse(formatNodeRecord(record))).toEqual(record);
});

it("a record is complete for readers of the original: every member that a strict one asks for, and its types", () => {
  const json = JSON.parse(formatNodeRecord(nodeRecord({ node: "node-a" })));
  expect(json).toMatchObject({
    node: "node-a",
    expires_ms: expect.any(Number),
    addr: "10.0.0.1:8081",
    probe_public_key: "ab".repeat(32),
    peer_protocol: 5,
    ownership_index_generation: "ab".repeat(32),
    extensions: ["records-1"],
  });
  expect(Object.keys(json.load).sort()).toEqual(
    [
      "sampled_ms resident_cells host_websockets rss_bytes in_use_bytes cpu_percent_x100",
      "open_fds fd_limit pressured shed_cells restoring",
    ]
      .join(" ")
      .split(" ")
      .sort(),
  );
  expect(JSON.stringify(json)).not.toContain(".5");
});

it("a foreign node's record needs a name and a time only; members nobody knows are ignored", () => {
  expect(parse({ node: "node-a", expires_ms: 7, log: { state: "open" }, later: [1] })).toEqual({
    node: "node-a",
    expiresMs: 7,
    addr: "",
    peerProtocol: 0,
    probePublicKey: "",
    extensions: [],
  });
});

describe("refused", () => {
  const good = { node: "node-a", expires_ms: 7 };
  const load = JSON.parse(formatNodeRecord(nodeRecord({ node: "node-a" }))).load;
  it.each<[string, unknown, RegExp]>([
    ["text that is no JSON", "{", /is not JSON/],
    ["bytes that are no UTF-8", '{"node":"\u00ff"', /is not JSON/],
    ["a list", [], /the whole/],
    ["no name", { expires_ms: 7 }, /: node:/],
    ["a name with a slash", { ...good, node: "a/b" }, /no node name/],
    ["no time", { node: "node-a" }, /expires_ms/],
    ["a time that is no whole number", { ...good, expires_ms: 1.5 }, /expires_ms/],
    ["a time before 1970", { ...good, expires_ms: -1 }, /expires_ms/],
    ["a protocol over 16 bits", { ...good, peer_protocol: 65_536 }, /peer_protocol/],
    ["an address without a port", { ...good, addr: "10.0.0.1" }, /addr/],
    ["an address with a port that cannot be", { ...good, addr: "10.0.0.1:65536" }, /addr.*HOST:PORT/],
    ["an address with a path", { ...good, addr: "10.0.0.1:80/x" }, /addr/],
    ["an address with a user", { ...good, addr: "u@h:80" }, /addr/],
    ["a short probe key", { ...good, probe_public_key: "ab" }, /probe_public_key/],
    ["half a load", { ...good, load: { ...load, open_fds: undefined } }, /load\.open_fds/],
    ["extensions that are no list", { ...good, extensions: "records-1" }, /extensions/],
    [
      "keys without the one that signs",
      { ...good, peer_keys: { accepts: ["0011223344556677"] } },
      /peer_keys/,
    ],
    ["an alias beyond loopback", { ...good, road_alias: "10.0.0.1" }, /road_alias/],
    ["another node's record", { ...good, node: "node-b" }, /is the record of node-b/],
  ])("%s", (_, value, message) => {
    expect(() => parse(value)).toThrow(NodeRecordError);
    expect(() => parse(value)).toThrow(message);
  });

  it("a record of over 64 KiB, unparsed", () => {
    expect(() => parse({ ...good, padding: "x".repeat(70_000) })).toThrow(/has over 65536 bytes/);
  });
});

it("a record is in force until its time, and not at it", () => {
  expect([99, 100, 101].map((nowMs) => isLive({ expiresMs: 100 }, nowMs))).toEqual([true, false, false]);
});
