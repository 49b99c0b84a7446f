import { isExecutionId } from "@cellkit/execution/contract";
import { describe, expect, it } from "vitest";
import { parseOrigin } from "../../src/core/origin.ts";
import { routeOf } from "../../src/core/route.ts";
import { fnv1a64, walkFromChance, walkFromHash } from "../../src/core/selection.ts";
import { vectors } from "../support/vectors.ts";

describe("a request means", () => {
  it.each([
    ["POST", "/v1/executions", { kind: "submit" }],
    ["GET", "/v1/executions", { kind: "none" }],
    ["post", "/v1/executions", { kind: "none" }],
    ["POST", "/v1/executions/", { kind: "none" }],
    ["GET", "/v1/executions/a", { kind: "read", id: "a" }],
    ["GET", "/v1/executions/audit", { kind: "read", id: "audit" }],
    ["GET", "/v1/executions/a/audit", { kind: "audit", id: "a" }],
    ["POST", "/v1/executions/a/cancel", { kind: "cancel", id: "a" }],
    ["GET", "/v1/executions/a/cancel", { kind: "none" }],
    ["POST", "/v1/executions/a/audit", { kind: "none" }],
    ["POST", "/v1/executions/a", { kind: "none" }],
    ["DELETE", "/v1/executions/a", { kind: "none" }],
    ["GET", "/v1/executions/..", { kind: "none" }],
    ["GET", "/v1/executions/a%2fb", { kind: "none" }],
    ["GET", "/v1/executions/a/", { kind: "none" }],
    ["GET", "/v1/executions/a?x", { kind: "none" }],
    ["GET", "//v1/executions/a", { kind: "none" }],
    ["GET", "http://h/v1/executions/a", { kind: "none" }],
    ["POST", "/v1/artifacts/prewarm", { kind: "prewarm" }],
    ["GET", "/v1/capabilities", { kind: "capabilities" }],
    ["POST", "/v1/capabilities", { kind: "none" }],
    ["GET", "/v1/cells", { kind: "none" }],
    ["GET", "/v1/health", { kind: "none" }],
    ["PUT", "/v1/parents", { kind: "parents" }],
    ["GET", "/v1/parents/x", { kind: "parents" }],
    ["GET", "/v1/parentsx", { kind: "none" }],
    ["POST", "/v1/scoped/prepare", { kind: "scoped" }],
    ["GET", "/v1/scoped/", { kind: "scoped" }],
    ["GET", "/v1/scoped", { kind: "none" }],
  ])("%s %s", (method, path, route) => {
    expect(routeOf(method, path)).toEqual(route);
  });
});

it.each(vectors.executionIds.map(({ id, routerAccepts }) => [id.slice(0, 20), id, routerAccepts] as const))(
  "an id as %j",
  (_name, id, accepted) => {
    expect(isExecutionId(id)).toBe(accepted);
  },
);

describe("an origin", () => {
  it.each(vectors.backendUrls.map(({ url, address }) => [url, address] as const))("%s", (url, address) => {
    const parsed = parseOrigin(url);
    const host = "problem" in parsed || !parsed.host.includes(":") ? "" : "[]";
    const found =
      "problem" in parsed
        ? null
        : host === ""
          ? `${parsed.host}:${parsed.port}`
          : `[${parsed.host}]:${parsed.port}`;
    expect(found).toBe(address);
  });

  it("is its text without the slashes at its end", () => {
    expect(parseOrigin("http://n:80//")).toEqual({ origin: "http://n:80", host: "n", port: 80 });
    expect(parseOrigin("http://n")).toEqual({ origin: "http://n", host: "n", port: 80 });
    expect(parseOrigin("http://[::1]")).toEqual({ origin: "http://[::1]", host: "::1", port: 80 });
  });

  it.each([
    ["http:///", /without a host/],
    ["http://:80", /usable host/],
    ["http://n:0", /usable host/],
    ["http://n:65536", /usable host/],
    ["http://n:http", /usable host/],
    ["http://::1", /usable host/],
    ["http://a\u0000", /more than/],
    ["http://user@n", /more than/],
    [`http://${"a".repeat(1_020)}`, /longer/],
    ["https://n", /https/],
  ])("cannot be %j", (text, problem) => {
    expect(parseOrigin(text)).toEqual({ problem: expect.stringMatching(problem) });
  });
});

describe("selection", () => {
  it.each(vectors.fnv1a.map((vector) => [vector.id, vector] as const))("hashes %j", (id, vector) => {
    expect(fnv1a64(id).toString(16)).toBe(vector.fnv1a64Hex);
    for (const [count, index] of Object.entries(vector.index)) {
      const list = Array.from({ length: Number(count) }, (_, at) => at);
      expect(walkFromHash(id, list)[0]).toBe(index);
    }
  });

  it("walks forward and around", () => {
    expect(walkFromHash("summary-4f1c9a52", ["a", "b", "c"])).toEqual(["b", "c", "a"]);
    expect(walkFromHash("x", [])).toEqual([]);
    expect(walkFromChance(0, ["a", "b"])).toEqual(["a", "b"]);
    expect(walkFromChance(0.999, ["a", "b"])).toEqual(["b", "a"]);
    expect(walkFromChance(0.5, [])).toEqual([]);
  });
});
