import { describe, expect, it } from "vitest";
import { breaches, type CallRecord, type Summary, Tally } from "../src/tally.ts";

let time = 0;

/** A call that took 10 ms, 20 ms after the one before. */
function call(part: Partial<CallRecord>): CallRecord {
  time += 20;
  return { cell: "a", kind: "read", startMs: time, endMs: time + 10, outcome: "ok", retries: 0, ...part };
}

function write(writeId: string, outcome: CallRecord["outcome"] = "ok", cell = "a"): CallRecord {
  return call({ kind: "write", writeId, outcome, cell });
}

function summaryOf(tally: Tally): Summary {
  return tally.summary({ nodes: 3, startMs: 0, endMs: 100_000, report: "r.html" });
}

describe("Tally", () => {
  it("finds an acknowledged write that is not in its cell", () => {
    const tally = new Tally();
    tally.call(write("one"));
    tally.call(write("two"));
    tally.effects("a", new Map([["one", 1]]));
    expect(tally.lostWrites()).toEqual(["two"]);
    expect(summaryOf(tally)).toMatchObject({ lost: 1, duplicated: 0, acknowledgedWrites: 2 });
  });

  it("finds a write that landed in another cell", () => {
    const tally = new Tally();
    tally.call(write("one", "ok", "a"));
    tally.effects("a", new Map());
    tally.effects("b", new Map([["one", 1]]));
    expect(summaryOf(tally).lost).toBe(1);
  });

  it("finds a write that ran twice", () => {
    const tally = new Tally();
    tally.call(write("one"));
    tally.effects("a", new Map([["one", 2]]));
    expect(summaryOf(tally)).toMatchObject({ lost: 0, duplicated: 1 });
  });

  it("lets an ambiguous write have run or not, but not twice", () => {
    const tally = new Tally();
    for (const id of ["not run", "run", "run twice"]) tally.call(write(id, "ambiguous"));
    tally.effects(
      "a",
      new Map([
        ["run", 1],
        ["run twice", 2],
      ]),
    );
    expect(tally.surplusEffects()).toEqual(["run twice"]);
    expect(tally.lostWrites()).toEqual([]);
  });

  it("finds the effect of a write that was reported as failed, and one that nobody made", () => {
    const tally = new Tally();
    tally.call(write("failed", "failed"));
    tally.effects(
      "a",
      new Map([
        ["failed", 1],
        ["stranger", 1],
      ]),
    );
    expect(tally.surplusEffects()).toEqual(["failed", "stranger"]);
  });

  it("counts ambiguous calls outside the window of a kill apart", () => {
    const tally = new Tally();
    tally.node({ node: "n", what: "kill", atMs: 50_000 });
    tally.call(call({ startMs: 40_000, endMs: 49_999, outcome: "ambiguous" }));
    tally.call(call({ startMs: 49_990, endMs: 50_010, outcome: "ambiguous" }));
    expect(summaryOf(tally)).toMatchObject({ ambiguous: 2, ambiguousOutsideKill: 1 });
  });

  it("measures from the kill to the first good answer of the cell that waited longest", () => {
    const tally = new Tally();
    tally.node({ node: "n", what: "kill", atMs: 1_000 });
    tally.call(call({ cell: "a", startMs: 990, endMs: 1_005 }));
    tally.call(call({ cell: "a", startMs: 1_010, endMs: 1_020 }));
    tally.call(call({ cell: "b", startMs: 1_000, endMs: 1_400, outcome: "failed" }));
    tally.call(call({ cell: "b", startMs: 1_410, endMs: 1_900 }));
    tally.call(call({ cell: "b", startMs: 1_950, endMs: 1_960 }));
    expect(tally.unavailableMs(100_000)).toBe(900);
  });

  it("takes a cell that never answered again for unavailable to the end", () => {
    const tally = new Tally();
    tally.node({ node: "n", what: "kill", atMs: 1_000 });
    tally.call(call({ cell: "b", startMs: 1_100, endMs: 1_400, outcome: "failed" }));
    expect(tally.unavailableMs(9_000)).toBe(8_000);
  });

  it("measures the longest pause of one cell, not of all together", () => {
    const tally = new Tally();
    tally.call(call({ cell: "a", startMs: 0, endMs: 10 }));
    tally.call(call({ cell: "b", startMs: 300, endMs: 310 }));
    tally.call(call({ cell: "a", startMs: 20, endMs: 500, outcome: "ambiguous" }));
    tally.call(call({ cell: "a", startMs: 510, endMs: 720 }));
    expect(tally.longestPauseMs()).toBe(710);
  });
});

describe("breaches", () => {
  const good: Summary = {
    held: true,
    nodes: 3,
    drains: 3,
    kills: 1,
    requests: 2_000,
    failed: 0,
    ambiguous: 2,
    ambiguousOutsideKill: 0,
    unavailableMs: 3_000,
    acknowledgedWrites: 900,
    lost: 0,
    duplicated: 0,
    retries: 40,
    sockets: { opened: 10, reconnects: 4, closeCodes: { 1012: 4 } },
    longestPauseMs: 800,
    seconds: 30,
    report: "r.html",
  };

  it("finds none in a run that held", () => {
    expect(breaches(good, 3)).toEqual([]);
  });

  it.each<[string, Partial<Summary>]>([
    ["a failed call", { failed: 1 }],
    ["a lost write", { lost: 1 }],
    ["a duplicated write", { duplicated: 1 }],
    ["an ambiguous call in a drain", { ambiguousOutsideKill: 1 }],
    ["a drain that did not end well", { drains: 2 }],
    ["no kill", { kills: 0 }],
    ["too few requests", { requests: 1_999 }],
    ["a cell that was away for too long", { unavailableMs: 3_001 }],
  ])("finds %s", (_, part) => {
    expect(breaches({ ...good, ...part }, 3).length).toBeGreaterThan(0);
  });
});
