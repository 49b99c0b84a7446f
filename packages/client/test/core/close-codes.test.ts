import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { type CloseContext, closeRule, localCloseCode } from "../../src/core/close-codes.ts";

const worked: CloseContext = { upMs: 10_000, minUptimeMs: 5_000, reconnectOnNormal: false };
const young: CloseContext = { ...worked, upMs: 1_000 };

describe("a close code decides what a socket does", () => {
  it.each([
    ["1000 is the end, and a clean one", 1000, "", worked, { action: "never", clean: true, node: "keep" }],
    [
      "1000 is a loss for those who say so",
      1000,
      "",
      { ...worked, reconnectOnNormal: true },
      { action: "at-once", clean: false },
    ],
    [
      "1000 of a young connection too",
      1000,
      "",
      { ...young, reconnectOnNormal: true },
      { action: "backoff", clean: false },
    ],
    ["1001 is a server going away", 1001, "", young, { action: "at-once", node: "probe" }],
    ["1002 is a protocol bug", 1002, "", worked, { action: "never", clean: false }],
    ["1003 is a data bug", 1003, "", worked, { action: "never", clean: false }],
    ["1005 is often an idle proxy", 1005, "", worked, { action: "backoff", node: "keep" }],
    ["1006 of a connection that had worked", 1006, "", worked, { action: "at-once", node: "probe" }],
    ["1006 of a young connection", 1006, "", young, { action: "backoff" }],
    ["1007 is a data bug", 1007, "", worked, { action: "never", clean: false }],
    ["1008 is policy", 1008, "", worked, { action: "never", clean: false }],
    ["1009 is a message too big", 1009, "", worked, { action: "never", clean: false }],
    ["1010 is a missing extension", 1010, "", worked, { action: "never", clean: false }],
    ["1011 is an internal error", 1011, "durability unproven", worked, { action: "backoff", node: "keep" }],
    [
      "1012 of a node that drains sets it aside",
      1012,
      "node draining",
      young,
      { action: "at-once", node: "drain" },
    ],
    [
      "1012 of a lost owner says nothing about the node",
      1012,
      "owner unavailable",
      young,
      { action: "at-once", node: "keep" },
    ],
    ["1012 without a known reason", 1012, "restart", young, { action: "at-once", node: "probe" }],
    ["1013 wants a second at least", 1013, "", worked, { action: "backoff", floorMs: 1_000 }],
    ["1014 wants a second at least", 1014, "", worked, { action: "backoff", floorMs: 1_000 }],
    ["1015 is fatal after three", 1015, "", worked, { action: "backoff", limitCount: 3 }],
    ["3000 is a 401", 3000, "", worked, { action: "authorize" }],
    ["3003 is a 403", 3003, "", worked, { action: "authorize" }],
    ["another library code", 3999, "", worked, { action: "backoff" }],
    ["4000 is the application's", 4000, "", worked, { action: "backoff" }],
    ["4399 is the application's", 4399, "", worked, { action: "backoff" }],
    ["4400 is the client's fault", 4400, "", worked, { action: "never", clean: false }],
    ["4401 is the client's fault", 4401, "", worked, { action: "never", clean: false }],
    ["4403 is the client's fault", 4403, "", worked, { action: "never", clean: false }],
    ["4408 is a timeout", 4408, "", worked, { action: "backoff" }],
    ["4429 is too many", 4429, "", worked, { action: "backoff" }],
    ["4499 is the client's fault", 4499, "", worked, { action: "never", clean: false }],
    ["4500 is the application's", 4500, "", worked, { action: "backoff" }],
    ["4999 is the application's", 4999, "", worked, { action: "backoff" }],
  ] as const)("%s", (_, code, reason, context, expected) => {
    expect(closeRule(code, reason, context)).toMatchObject(expected);
  });

  it("has a rule for every number, and a clean end for 1000 only", () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.string(),
        fc.nat(),
        fc.boolean(),
        (code, reason, upMs, reconnectOnNormal) => {
          const rule = closeRule(code, reason, { upMs, minUptimeMs: 5_000, reconnectOnNormal });
          expect(["never", "backoff", "at-once", "authorize"]).toContain(rule.action);
          expect(rule.clean).toBe(code === 1000 && !reconnectOnNormal);
        },
      ),
      { seed: inject("seed") },
    );
  });
});

describe("what the ws library refuses has the close code that it sends", () => {
  it.each([
    ["WS_ERR_UNSUPPORTED_MESSAGE_LENGTH", 1009],
    ["WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH", 1009],
    ["WS_ERR_INVALID_UTF8", 1007],
    ["WS_ERR_TOO_MANY_BUFFERED_PARTS", 1008],
    ["WS_ERR_INVALID_OPCODE", 1002],
    ["ECONNRESET", undefined],
    [undefined, undefined],
  ])("%s is %s", (errorCode, closeCode) => {
    expect(localCloseCode(errorCode)).toBe(closeCode);
  });
});
