import type { Logger } from "@cellkit/daemon";
import { beforeEach, expect, it } from "vitest";
import { CredentialError, PlacementError } from "../src/errors.ts";
import { RouterLog } from "../src/router-log.ts";

let lines: string[];
let nowMs: number;
let log: RouterLog;
beforeEach(() => {
  lines = [];
  nowMs = 0;
  const write =
    (level: string) =>
    (...args: unknown[]) =>
      lines.push(
        `${level} ${args.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(" ")}`,
      );
  const levels = Object.fromEntries(["debug", "info", "warn", "error"].map((level) => [level, write(level)]));
  log = new RouterLog({ ...levels, debug: () => undefined } as unknown as Logger, () => nowMs);
});

const request = (refusal: "credentials" | undefined) =>
  ({ kind: "request", route: "read", status: refusal ? 503 : 200, refusal, durationMs: 1 }) as const;

it("tokens that cannot be used are told once, and when they can be used again", () => {
  const event = { kind: "credentials", error: new CredentialError("client", "the file is gone") } as const;
  for (let count = 0; count < 3; count += 1) {
    log.hear(event);
    log.hear(request("credentials"));
  }
  expect(log.hasCredentialProblem).toBe(true);
  log.hear(request(undefined));
  log.hear(request(undefined));
  expect(log.hasCredentialProblem).toBe(false);
  expect(lines).toEqual([
    expect.stringMatching(/^error the file is gone/),
    "info the tokens can be used again",
  ]);
});

const unknown = { problem: undefined, cause: undefined };

it("a ledger that fails is told with its message and the code under it", () => {
  const problem = "the ledger postgresql://db/plane is unavailable: connect ECONNREFUSED 127.0.0.1:5432";
  const code = "CELLKIT_LEDGER_UNAVAILABLE";
  log.hear({ kind: "claim", result: "failed", code, problem, cause: "ECONNREFUSED", durationMs: 1 });
  expect(lines).toEqual([
    `warn ${JSON.stringify({ code, problem, cause: "ECONNREFUSED" })} the ledger could not be asked; the caller was told to come again`,
  ]);
});

it.each([
  ["backends", "another list of dispatchers", "while the list is changed"],
  ["client", "another client token", "in a rotation"],
] as const)("another replica's %s is told under a name of its own", (part, what, when) => {
  log.hearMismatch({ replica: "router-2", part }, "begun");
  log.hearMismatch({ replica: "router-2", part }, "over");
  expect(lines[0]).toMatch(
    `error {"otherReplica":"router-2","part":"${part}"} the replica router-2 has ${what}`,
  );
  expect(lines[0]).toMatch(`(${when} this passes)`);
  expect(lines[1]).toMatch(`info {"otherReplica":"router-2","part":"${part}"}`);
});

it("another replica's ledger is told with what it leads to", () => {
  log.hearMismatch({ replica: "router-2", part: "ledger" }, "begun");
  expect(lines[0]).toMatch(/router-2 has another ledger: .*can run again.*stop submissions/);
});

it("what fails for every request is told every ten seconds, with how often", () => {
  const failed = {
    kind: "claim",
    result: "failed",
    code: "CELLKIT_LEDGER_BUSY",
    ...unknown,
    durationMs: 1,
  } as const;
  for (let count = 0; count < 5; count += 1) log.hear(failed);
  expect(lines).toHaveLength(1);
  nowMs = 10_000;
  log.hear(failed);
  expect(lines[1]).toContain('"alsoCount":4');
  log.hear({ ...failed, code: "CELLKIT_LEDGER_OWNER" });
  expect(lines[2]).toContain("no dispatcher would take new work");
});

it("a placement rule that fails, and a read that the ledger fails, are told in words of their own", () => {
  const failed = { kind: "claim", result: "failed", durationMs: 1, problem: undefined } as const;
  log.hear({ ...failed, code: "CELLKIT_LEDGER_OWNER", cause: "CELLKIT_ROUTER_NO_BACKEND" });
  log.hear({ ...failed, code: "CELLKIT_LEDGER_OWNER", cause: "CELLKIT_ROUTER_PLACEMENT" });
  log.hear({ ...failed, kind: "lookup", code: "CELLKIT_LEDGER_CORRUPT", cause: undefined });
  log.hear({ kind: "defect", error: new PlacementError("failed") });
  expect(lines.map((line) => line.replace(/^(\w+) .*\} /, "$1 "))).toEqual([
    "warn no dispatcher would take new work; the caller was told to come again",
    "warn the placement rule failed; the caller was told to come again",
    "warn the ledger could not be read; the caller was told so",
    "error a placement rule failed; the caller was told to come again",
  ]);
});

it("every uncertain submission is told", () => {
  for (let count = 0; count < 2; count += 1) log.hear({ kind: "uncertain", backend: "http://a" });
  expect(lines).toHaveLength(2);
});

it("a lookup is told when it begins to fail, and when it works again", () => {
  const event = { kind: "discovery", name: "plane", originCount: 2 } as const;
  for (const problem of [undefined, "ESERVFAIL", "ESERVFAIL", undefined, undefined])
    log.hearDiscovery({ ...event, problem });
  expect(lines).toEqual([
    expect.stringMatching(/^warn \{"dnsName":"plane",.*ESERVFAIL/),
    expect.stringMatching(/^info \{"dnsName":"plane",.*again/),
  ]);
});
