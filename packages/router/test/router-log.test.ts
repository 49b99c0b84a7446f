import type { Logger } from "@cellkit/daemon";
import { beforeEach, expect, it } from "vitest";
import { CredentialError } from "../src/errors.ts";
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

it("what fails for every request is told every ten seconds, with how often", () => {
  const failed = { kind: "claim", result: "failed", code: "CELLKIT_LEDGER_BUSY", durationMs: 1 } as const;
  for (let count = 0; count < 5; count += 1) log.hear(failed);
  expect(lines).toHaveLength(1);
  nowMs = 10_000;
  log.hear(failed);
  expect(lines[1]).toContain('"alsoCount":4');
  log.hear({ ...failed, code: "CELLKIT_LEDGER_OWNER" });
  expect(lines[2]).toContain("no dispatcher would take new work");
});

it("every uncertain submission is told", () => {
  for (let count = 0; count < 2; count += 1) log.hear({ kind: "uncertain", backend: "http://a" });
  expect(lines).toHaveLength(2);
});

it("a lookup is told when it begins to fail, and when it works again", () => {
  const event = { kind: "discovery", name: "plane", originCount: 2 } as const;
  for (const problem of [undefined, "ESERVFAIL", "ESERVFAIL", undefined, undefined])
    log.hearDiscovery({ ...event, problem });
  expect(lines).toEqual([expect.stringContaining("ESERVFAIL"), expect.stringContaining("again")]);
});
