import { describe, expect, it } from "vitest";
import { classifyDeath } from "../../src/core/child-death.ts";

const lapsed = "error: leaving the cluster: the lease lapsed before it could be renewed";
const threw = "service app: Uncaught Error: no database";

describe("classifyDeath", () => {
  it("knows a fence by its line and a failing exit code", () => {
    expect(classifyDeath(1, ["x", lapsed, ""])).toEqual({
      kind: "fenced",
      detail: "the lease lapsed before it could be renewed",
    });
  });

  it.each([
    ["a signal ended it", null],
    ["it stopped cleanly", 0],
  ])("sees no fence when %s", (_, code) => {
    expect(classifyDeath(code, [lapsed]).kind).toBe("died");
  });

  it("shows the text of a Worker that did not load, without workerd's stacks", () => {
    const lines = [
      "info: something before",
      "service app: The compatibility flag nodejs_compat became the default as of 2026-08-04 so …",
      threw,
      "  at index.js:3:7",
      "stack: /bin/workerd@690d450",
      "workerd/server/server/worker.rs:468: warning: A DurableObjectNamespace in the config …",
      'Socket "public" refers to service "app" with a named entrypoint, but "app" has no such named entrypoint.',
    ];
    const detail = "Uncaught Error: no database\n  at index.js:3:7";
    expect(classifyDeath(1, lines)).toEqual({ kind: "load", detail });
  });

  it("does not take advice for a failure", () => {
    const lines = [
      "service app: The compatibility flag x became the default as of 2026-08-04 so …",
      "bind(): in use",
    ];
    expect(classifyDeath(1, lines)).toEqual({ kind: "died", detail: "bind(): in use" });
  });

  it("calls a crash in operation a death, also when the Worker once printed something like a load failure", () => {
    expect(classifyDeath(null, [threw]).kind).toBe("died");
  });

  it("shows the last line of any other death", () => {
    expect(classifyDeath(1, ["first", "last", "stack: x"])).toEqual({ kind: "died", detail: "last" });
    expect(classifyDeath(1, [])).toEqual({ kind: "died", detail: "it printed nothing" });
  });
});
