import { describe, expect, it } from "vitest";
import { encodeAnswer, refusalAnswer, refusals } from "../../src/core/answer.ts";
import {
  decideCall,
  decideOwner,
  decideOwnerAnswer,
  decideSubmission,
  refuseCaller,
  refuseScoped,
} from "../../src/core/decide.ts";
import type { RequestHead } from "../../src/core/request-head.ts";

const origin = "http://10.20.0.11:8787";
const credentials = { client: [Buffer.from("client")], backend: Buffer.from("backend"), capability: [] };
const head = (given: Partial<RequestHead>): RequestHead => ({
  method: "POST",
  path: "/v1/executions",
  authorization: "Bearer client",
  pin: undefined,
  contentLength: 10,
  ...given,
});
const decide = (given: Partial<RequestHead>) =>
  refuseCaller(head(given), credentials) ?? decideCall(head(given), [origin, "http://n\u00e9"]);
const cancel = "/v1/executions/a/cancel";
const prewarm = "/v1/artifacts/prewarm";

describe("a request is judged in order", () => {
  it.each([
    ["the token before the pin", { authorization: "Bearer x", pin: "nobody" }, "unauthorized"],
    ["the token before the path", { authorization: "Bearer x", path: "/" }, "unauthorized"],
    ["the pin before the path", { pin: "nobody", path: "/" }, "unknown-pin"],
    ["the pin's place before the path", { pin: origin, path: "/" }, "misplaced-pin"],
    ["the pin before the length", { pin: "nobody", contentLength: 0 }, "unknown-pin"],
    ["a pin on a read", { pin: origin, method: "GET", path: "/v1/executions/a" }, "misplaced-pin"],
    ["a pin with a slash more", { pin: `${origin}/` }, "unknown-pin"],
    ["a pin too long", { pin: `${origin}${"x".repeat(1_024)}` }, "unknown-pin"],
    ["an empty pin", { pin: "" }, "unknown-pin"],
    ["an empty submission", { contentLength: 0 }, "body-size"],
    ["a submission too long", { contentLength: 65_537 }, "body-size"],
    ["a cancellation with a body", { path: cancel, contentLength: 1 }, "cancel-body"],
    ["prewarming without a pin, and empty", { path: prewarm, contentLength: 0 }, "pin-required"],
    ["prewarming, empty", { path: prewarm, pin: origin, contentLength: 0 }, "prewarm-size"],
    ["prewarming, too long", { path: prewarm, pin: origin, contentLength: 65_537 }, "prewarm-size"],
    ["parents", { path: "/v1/parents" }, "no-parents"],
    ["scoped calls", { path: "/v1/scoped/read" }, "scoped-disabled"],
    ["another path", { path: "/v1/health" }, "not-found"],
  ] as const)("%s", (_rule, given, refusal) => {
    expect(decide(given)).toBe(refusal);
  });

  it.each([
    ["a submission", {}, { kind: "submit", pin: undefined, bodyBytes: 10 }],
    [
      "the longest submission, pinned",
      { contentLength: 65_536, pin: origin },
      { kind: "submit", pin: origin, bodyBytes: 65_536 },
    ],
    [
      "a pin in UTF-8",
      { pin: "http://n\u00c3\u00a9" },
      { kind: "submit", pin: "http://n\u00e9", bodyBytes: 10 },
    ],
    ["prewarming", { path: prewarm, pin: origin }, { kind: "prewarm", pin: origin, bodyBytes: 10 }],
    ["a cancellation", { path: cancel, contentLength: 0 }, { kind: "cancel", id: "a" }],
    ["a read", { method: "GET", path: "/v1/executions/a" }, { kind: "read", id: "a" }],
    ["an audit", { method: "GET", path: "/v1/executions/a/audit" }, { kind: "audit", id: "a" }],
    ["discovery", { method: "GET", path: "/v1/capabilities" }, { kind: "capabilities" }],
  ] as const)("%s is a call", (_rule, given, call) => {
    expect(decide(given)).toEqual(call);
  });

  it("scoped calls are refused before any token is read", () => {
    expect(refuseScoped(head({ path: "/v1/scoped/x", authorization: undefined }))).toBe("scoped-disabled");
    expect(refuseScoped(head({}))).toBeUndefined();
  });
});

const owner = { backend: origin, bodyHash: "blake3:0" };

it("only a new claim allows the POST", () => {
  expect(decideSubmission({ kind: "new", owner }, undefined)).toEqual({ kind: "post", owner });
  expect(decideSubmission({ kind: "existing", owner }, undefined)).toEqual({ kind: "get", owner });
  expect(decideSubmission({ kind: "existing", owner }, origin)).toEqual({ kind: "get", owner });
  expect(decideSubmission({ kind: "existing", owner }, "http://b")).toEqual({
    kind: "refuse",
    refusal: "other-backend",
  });
  expect(decideSubmission({ kind: "conflict" }, "http://b")).toEqual({ kind: "refuse", refusal: "conflict" });
  expect(decideSubmission({ kind: "full" }, undefined)).toEqual({ kind: "refuse", refusal: "full" });
});

it("an owner is asked where it is known, and its 404 goes to nobody", () => {
  expect(decideOwner(undefined, [origin])).toBe("unknown-execution");
  expect(decideOwner(owner, [])).toBe("owner-removed");
  expect(decideOwner(owner, [origin])).toBe(owner);
  expect(decideOwnerAnswer(undefined)).toBe("owner-lost");
  expect(decideOwnerAnswer(404)).toBe("owner-lost");
  expect(decideOwnerAnswer(503)).toBe("relay");
});

it("an answer has exactly three headers and the phrase OK", () => {
  expect(Buffer.from(encodeAnswer(refusalAnswer("unauthorized"))).toString()).toBe(
    'HTTP/1.1 401 OK\r\nContent-Type: application/json\r\nContent-Length: 24\r\nConnection: close\r\n\r\n{"error":"unauthorized"}',
  );
  expect(Object.values(refusals).every(([status]) => status >= 400)).toBe(true);
});
