/** What the children of crash rounds do when they are killed. */
import type { CrashOperation, CrashStep } from "./crash-child.ts";

export interface CrashScenario {
  name: string;
  ids: readonly string[];
  /** What each id stands for in the end; recovery claims with it. */
  bodies: Readonly<Record<string, string>>;
  /** Done by the parent beforehand; if empty, the child creates the ledger. */
  before: readonly CrashOperation[];
  steps: readonly CrashStep[];
  capacity?: number;
}

const HOUR_MS = 3_600_000;
const claim = (id: string, owner = "child", body = `body of ${id}`): CrashOperation => ({
  kind: "claim",
  id,
  body,
  owner: `http://${owner}:8787`,
});
const retire = (id: string): CrashOperation => ({ kind: "retire", id });
const sweep: CrashOperation = { kind: "sweep" };

export const crashScenarios: readonly CrashScenario[] = [
  {
    name: "create",
    ids: ["a"],
    bodies: {},
    before: [],
    steps: [{ operations: [claim("a")] }],
  },
  {
    name: "claim",
    ids: ["seed", "a", "b"],
    bodies: {},
    before: [claim("seed", "parent")],
    steps: [
      { operations: [claim("a")] },
      { operations: [claim("a", "other"), claim("seed", "other"), claim("b")] },
      { operations: [claim("a", "other", "other bytes")] },
    ],
  },
  {
    name: "claim together",
    ids: ["a", "b", "c", "d", "e", "f"],
    bodies: {},
    before: [claim("f", "parent")],
    steps: [{ operations: [..."abcdef"].map((id) => claim(id)).concat(claim("a", "rival"), claim("f")) }],
  },
  {
    name: "retire young and sweep",
    ids: ["a", "b", "c"],
    bodies: { a: "the next body of a" },
    before: [claim("a", "parent"), claim("b", "parent"), claim("c", "parent")],
    steps: [
      { operations: [retire("a")] },
      { operations: [retire("b"), claim("c")] },
      { laterMs: HOUR_MS, operations: [sweep] },
      { laterMs: HOUR_MS, operations: [claim("a", "child", "the next body of a")] },
    ],
  },
  {
    name: "retire old",
    ids: ["a", "b"],
    bodies: { a: "the next body of a" },
    before: [claim("a", "parent"), claim("b", "parent"), retire("b")],
    steps: [
      { laterMs: HOUR_MS, operations: [retire("a")] },
      { laterMs: HOUR_MS, operations: [claim("a", "child", "the next body of a"), retire("b")] },
    ],
  },
  {
    name: "restore",
    ids: ["a", "b"],
    bodies: {},
    before: [claim("b", "parent")],
    steps: [
      { operations: [{ kind: "restore", id: "a", body: "body of a", owner: "http://old:8787" }] },
      { operations: [{ kind: "restore", id: "b", body: "body of b", owner: "http://old:8787" }] },
    ],
  },
  {
    name: "fill",
    ids: ["a", "b", "c", "d", "e"],
    bodies: {},
    before: [claim("a", "parent")],
    steps: [{ operations: [claim("b"), claim("c"), claim("d")] }, { operations: [claim("e")] }],
    capacity: 3,
  },
];
