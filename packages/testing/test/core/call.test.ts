import { expect, it } from "vitest";
import { routeOf } from "../../src/core/call.ts";

it.each([
  ["GET", "/v1/executions/a", { kind: "read", id: "a" }],
  ["GET", "/v1/executions/a/b", { kind: "read", id: "a/b" }],
  ["GET", "/v1/executions/", { kind: "read", id: "" }],
  ["GET", "/v1/executions/a/audit", { kind: "audit", id: "a" }],
  ["POST", "/v1/executions/a/b/cancel", { kind: "cancel", id: "a/b" }],
  ["POST", "/v1/executions/a", { kind: "other" }],
  ["DELETE", "/v1/executions/a", { kind: "other" }],
  ["GET", "/v1/executions", { kind: "other" }],
  ["GET", "/v1/health?x", { kind: "other" }],
])("%s %s is %j: a dispatcher has no grammar for ids", (method, path, route) => {
  expect(routeOf(method, path)).toEqual(route);
});
