import { describe, expect, it } from "vitest";
import { fileSystemOf } from "../../src/posix/file-systems.ts";
import { type CheckResult, type LedgerCheck, verdictOf } from "../../src/qualification/check.ts";
import { wrongRace } from "../../src/qualification/claim-checks.ts";
import { adviceOf, untested } from "../../src/qualification/untested.ts";

const check = (result: CheckResult, required = true, name = "a-check"): LedgerCheck => ({
  name,
  result,
  required,
  detail: "",
  ms: 1,
});

it.each([
  [
    "all that it rests on passed",
    [check("passed"), check("failed", false), check("not-tested", false)],
    "qualified",
  ],
  ["something failed", [check("passed"), check("failed"), check("not-tested")], "violated"],
  ["something was not tested", [check("passed"), check("not-tested")], "unknown"],
  ["nothing was tried", [check("passed", false)], "unknown"],
])("when %s", (_, checks, verdict) => {
  expect(verdictOf(checks)).toBe(verdict);
});

describe("what was not tested", () => {
  const nfs = fileSystemOf(0x6969);
  const severalOf = (machines: string[], fileSystem = nfs) =>
    untested({ kind: "posix", machines: new Map(machines.map((name) => [name, name])), fileSystem }).find(
      ({ name }) => name === "several-machines",
    );

  it("a disk that may be shared is not qualified by one machine alone", () => {
    expect(severalOf(["this machine"])).toMatchObject({ result: "not-tested", required: true });
    expect(severalOf(["this machine"], fileSystemOf(0xef53))).toMatchObject({ required: false });
    expect(severalOf(["this machine", "b:1"])).toMatchObject({ result: "passed" });
  });

  it("peers on the same machine are not several machines", () => {
    const machines = new Map([
      ["this machine", "boot-1"],
      ["127.0.0.1:7070", "boot-1"],
    ]);
    const told = untested({ kind: "posix", machines, fileSystem: nfs });
    const several = told.find(({ name }) => name === "several-machines");
    expect(several).toMatchObject({ result: "not-tested", required: true });
    expect(several?.detail).toContain("this machine, 127.0.0.1:7070 are one and the same machine");
  });

  it.each(["posix", "bucket", "postgres"] as const)("power loss, for a %s ledger too", (kind) => {
    const all = untested({ kind, machines: new Map([["this machine", "a"]]), fileSystem: undefined });
    expect(all.find(({ name }) => name === "power-loss")).toMatchObject({ result: "not-tested" });
    expect(all.every(({ required }) => !required)).toBe(true);
  });
});

it.each([
  ["coherent, seen from several machines", "passed", "passed", /may be set/],
  ["coherent, seen from one", "passed", "not-tested", /only with --peer/],
  ["cached", "failed", "passed", /leave trustDirectoryTimes off/],
] as const)("times that are %s", (_, times, several, words) => {
  const checks = [check(times, false, "times-coherent"), check(several, true, "several-machines")];
  expect(adviceOf(checks).join()).toMatch(words);
});

it("what kept the verdict open is said once for each reason; too few connections with what to do", () => {
  const open = (name: string, detail: string) => ({ ...check("not-tested", true, name), detail });
  const busy = (agent: number) => `it broke off: agent ${agent}: sorry, too many clients (SQLSTATE 53300): …`;
  expect(
    adviceOf([
      check("passed"),
      open("process-death", busy(4)),
      open("replica-restart", busy(5)),
      open("several-machines", "only this machine took part"),
      { ...check("not-tested", false, "power-loss"), detail: "cannot be seen" },
    ]),
  ).toEqual([
    expect.stringMatching(/^process-death, replica-restart could not be tested: .*raise max_connections, or/),
    "several-machines could not be tested: only this machine took part",
  ]);
});

it("there is no advice on times that nobody looked at", () => {
  expect(adviceOf([check("passed")])).toEqual([]);
});

it.each([
  [0x01021994, "tmpfs", "memory"],
  [0x858458f6 | 0, "ramfs", "memory"],
  [0xef53, "ext2/3/4", "local"],
  [0xff534d42 | 0, "cifs", "shared"],
  [0x12345, "type 0x12345", "shared"],
])("file system %i is %s, %s", (type, name, kind) => {
  expect(fileSystemOf(type)).toEqual({ name, kind });
});

describe("the answers to one id that all claimed with the same bytes", () => {
  const isNew = (backend: string) => ({ kind: "new" as const, backend });
  const isOld = (backend: string) => ({ kind: "existing" as const, backend });
  const refused = { kind: "error" as const, code: "CELLKIT_LEDGER_BUSY", message: "" };

  it.each([
    ["one new, all agree", [isNew("a"), isOld("a"), isOld("a")]],
    ["a refusal among them", [isNew("a"), refused]],
    ["the refused one may have been recorded", [isOld("a"), refused]],
  ])("right: %s", (_, answers) => {
    expect(wrongRace("id", answers)).toBeUndefined();
  });

  it.each([
    ["two new", [isNew("a"), isNew("a")], /2 processes/],
    ["none new", [isOld("a"), isOld("a")], /nobody/],
    ["two owners", [isNew("a"), isOld("b")], /2 owners/],
    ["a conflict", [isNew("a"), { kind: "conflict" as const }], /conflict/],
    ["full", [isNew("a"), { kind: "full" as const }], /full/],
  ])("wrong: %s", (_, answers, words) => {
    expect(wrongRace("id", answers)).toMatch(words);
  });
});
