import type { NodeDiagnosis, NodeVerdict } from "@cellkit/peer";
import { describe, expect, it } from "vitest";
import { diagnosisRows, type FleetDiagnosis, isOwnClockSuspect, isTrouble } from "../src/fleet-diagnosis.ts";
import { table } from "../src/table.ts";

function node(verdict: NodeVerdict, skewMs?: number): NodeDiagnosis {
  return {
    node: "a",
    addr: "10.0.0.1:8081",
    verdict,
    detail: "so it is",
    proved: true,
    skewMs,
    peerProtocol: 5,
    roundTripMs: 2.4,
    version: undefined,
  };
}
function fleet(nodes: NodeDiagnosis[], given: Partial<FleetDiagnosis> = {}): FleetDiagnosis {
  return { nodes, unreadable: [], olderCount: 0, truncated: false, rotation: "none", ...given };
}

describe("trouble is", () => {
  it.each<[string, FleetDiagnosis, boolean]>([
    ["no ready node", fleet([]), true],
    ["only one that is being stopped", fleet([node("draining")]), true],
    ["not one that is being stopped beside a ready one", fleet([node("draining"), node("ready")]), false],
    ["not one that has stopped", fleet([node("gone"), node("ready")]), false],
    ["one that cannot be reached", fleet([node("unreachable"), node("ready")]), true],
    [
      "a record that cannot be read",
      fleet([node("ready")], { unreadable: [{ key: "k", reason: "r" }] }),
      true,
    ],
    ["more records than were read", fleet([node("ready")], { truncated: true }), true],
    ["not an old record", fleet([node("ready")], { olderCount: 9 }), false],
  ])("%s", (_, found, expected) => {
    expect(isTrouble(found)).toBe(expected);
  });
});

describe("this machine's clock is the suspect", () => {
  it.each<[string, NodeDiagnosis[], boolean]>([
    ["when all nodes are off alike", [node("clock-skew", 60_000), node("clock-skew", 61_000)], true],
    ["not for one node", [node("clock-skew", 60_000)], false],
    ["not when they disagree", [node("clock-skew", 60_000), node("clock-skew", -60_000)], false],
    [
      "not when one agrees",
      [node("clock-skew", 60_000), node("clock-skew", 60_000), node("ready", 0)],
      false,
    ],
    [
      "also when others do not answer",
      [node("clock-skew", 60_000), node("clock-skew", 60_000), node("gone")],
      true,
    ],
  ])("%s", (_, nodes, expected) => {
    expect(isOwnClockSuspect(fleet(nodes))).toBe(expected);
  });
});

it("the table has a row a node and one a record that cannot be read, in columns", () => {
  const found = fleet([node("ready", 400), node("clock-skew", -45_400)], {
    unreadable: [{ key: "nodes/b.json", reason: "is not JSON" }],
  });
  expect(table(diagnosisRows(found))).toEqual([
    "NODE  ADDRESS        STATE       PROTOCOL  CLOCK  ANSWERED  DETAIL",
    "a     10.0.0.1:8081  ready       5         same   2 ms      so it is",
    "a     10.0.0.1:8081  clock-skew  5         -45 s  2 ms      so it is",
    "-     -              bad-record  -         -      -         nodes/b.json is not JSON",
  ]);
});
