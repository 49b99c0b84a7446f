import { expect, test } from "vitest";
import {
  executionRequestSchema,
  parseExecutionRequest,
  stringifyJson,
  unsupportedCombinations,
  validateExecutionRequest,
} from "../../src/index.ts";
import { hash, moteRequest } from "../support/requests.ts";
import { requestVector, vectors } from "../support/vectors.ts";

test.each(vectors.requestValidation)("vector: $name", ({ request, problems }) => {
  expect(validateExecutionRequest(executionRequestSchema.parse(request))).toEqual(problems);
  expect(parseExecutionRequest(JSON.stringify(request)).kind).toBe(
    problems.length === 0 ? "valid" : "invalid",
  );
});

/** Harness requests with one thing changed: each of these alone is the one problem. */
const harness2 = "v1alpha2 reference harness";
const harness3 = "v1alpha3 JSON harness";
test.each<[string, string, string, unknown]>([
  ["v1alpha1 with a harness", harness2, "apiVersion", "celln.dev/v1alpha1"],
  ["the contract of the other version", harness2, "harness.contractVersion", "celln.json-tools/v1"],
  ["json in the reference harness", harness2, "harness.json", { system: "", maxTurns: 1, maxCalls: 0 }],
  ["one borrowed tool", harness2, "harness.borrowedTools.1", undefined],
  ["two borrowed tools of one name", harness2, "harness.borrowedTools.1.name", "add"],
  ["two borrowed tools of one path", harness2, "harness.borrowedTools.1.path", "/add"],
  ["a tool name with a dot", harness2, "harness.borrowedTools.0.name", "a.b"],
  ["a tool name of 65 characters", harness2, "harness.borrowedTools.0.name", "a".repeat(65)],
  ["a relative tool path", harness2, "harness.borrowedTools.0.path", "add"],
  ["a tool path with ..", harness2, "harness.borrowedTools.0.path", "/a/../b"],
  ["a tool path with an empty segment", harness2, "harness.borrowedTools.0.path", "/a//b"],
  ["a tool path of 257 bytes", harness2, "harness.borrowedTools.0.path", `/${"a".repeat(256)}`],
  ["an empty description", harness2, "harness.borrowedTools.0.description", ""],
  ["a description of 513 bytes", harness2, "harness.borrowedTools.0.description", `${"é".repeat(256)}x`],
  ["a tool hash that is none", harness2, "harness.borrowedTools.0.hash", "latest"],
  ["a model grant that is none", harness2, "harness.modelGrant.hash", "latest"],
  ["no model", harness2, "harness.model", ""],
  ["a model of 129 bytes", harness2, "harness.model", "m".repeat(129)],
  ["a blank task", harness2, "harness.task", " \n"],
  ["a NUL in the task", harness2, "harness.task", "a\0b"],
  ["lane tool", harness2, "execution.lane", "tool"],
  ["no hardware isolation", harness2, "execution.requireHardwareIsolation", false],
  ["a workspace", harness2, "capabilities.workspace", "read-only"],
  ["no egress entry", harness2, "capabilities.egress", []],
  ["an argument", harness2, "invocation.args", ["x"]],
  ["no invocation", harness2, "invocation", undefined],
  ["a tool without closure", harness2, "tools.0.closure", undefined],
  ["no json in the JSON harness", harness3, "harness.json", undefined],
  ["maxTurns 0", harness3, "harness.json.maxTurns", 0],
  ["maxCalls 17", harness3, "harness.json.maxCalls", 17],
  ["a system text of 2049 bytes", harness3, "harness.json.system", "s".repeat(2049)],
  ["a NUL in the system text", harness3, "harness.json.system", "\0"],
  ["the fetch tool's path", harness3, "harness.borrowedTools.0.path", "/pilot-fetch"],
  ["no stdio of a tool", harness3, "harness.borrowedTools.0.jsonStdio", undefined],
  ["another stdio", harness3, "harness.borrowedTools.0.jsonStdio.abi", "celln.json-stdio/v2"],
  ["a schema hash that is none", harness3, "harness.borrowedTools.0.jsonStdio.inputSchema", "x"],
  ["no input bytes", harness3, "harness.borrowedTools.0.jsonStdio.inputBytes", 0],
  ["65537 output bytes", harness3, "harness.borrowedTools.0.jsonStdio.outputBytes", 65_537],
  ["30001 ms", harness3, "harness.borrowedTools.0.jsonStdio.timeoutMs", 30_001],
])("%s breaks the harness", (_, name, path, value) => {
  const request = executionRequestSchema.parse(changed(requestVector(name), path, value));
  expect(validateExecutionRequest(request)[0]).toEqual({ code: "invalid_harness", field: "harness" });
});

const input = { name: "a", hash: hash("2"), mediaType: "text/plain", bytes: 1 };
const closure = { alias: "/usr/bin/lint", hash: hash("3"), closure: { hash: hash("4") } };
test.each<[string, string, unknown, string]>([
  ["17 inputs", "inputs", Array.from({ length: 17 }, (_, i) => ({ ...input, name: `i${i}` })), "inputs"],
  ["65537 input bytes", "inputs", [{ ...input, bytes: 65_537 }], "inputs"],
  ["input bytes beyond 2^53", "inputs", [{ ...input, bytes: 2n ** 64n - 1n }], "inputs"],
  ["inputs without a workspace", "none", [input], "capabilities.workspace"],
  [
    "two tools",
    "tools",
    [closure, { alias: "/b", hash: hash("5") }].map((t) => ({ ...t, closure: null })),
    "tools",
  ],
  ["a closure with egress", "tools", [closure], "tools[0].closure"],
])("%s is not supported", (_, what, value, field) => {
  const { capabilities } = moteRequest("r");
  const egress = ["https://ok.example"];
  const request = executionRequestSchema.parse(
    what === "none"
      ? moteRequest("r", { inputs: [input], capabilities: { ...capabilities, workspace: "none" } })
      : moteRequest("r", { [what]: value, capabilities: { ...capabilities, egress } }),
  );
  expect(unsupportedCombinations(request)).toEqual([{ code: "unsupported", field }]);
  expect(parseExecutionRequest(stringifyJson(request))).toMatchObject({ kind: "unsupported" });
});

test.each<[string, string]>([
  ["an unknown member", '"surprise":1,'],
  ["an unknown version of a known member", '"mote":{"hash":"x","tag":"latest"},'],
  ["a fraction where an integer belongs", '"inputs":[{"name":"a","hash":"h","mediaType":"m","bytes":1.0}],'],
  ["a negative integer", '"inputs":[{"name":"a","hash":"h","mediaType":"m","bytes":-1}],'],
  ["2^64", '"inputs":[{"name":"a","hash":"h","mediaType":"m","bytes":18446744073709551616}],'],
  ["null for a list", '"inputs":null,'],
  ["null for a harness", '"harness":null,'],
  ["a member named __proto__", '"__proto__":{},'],
])("%s makes a request malformed", (_, member) => {
  const { mote: _mote, ...rest } = moteRequest("r");
  expect(parseExecutionRequest(`{${member}${JSON.stringify(rest).slice(1)}`)).toMatchObject({
    kind: "malformed",
  });
});

test.each([
  ["json", harness2, "harness.json"],
  ["jsonStdio", harness3, "harness.borrowedTools.0.jsonStdio"],
])("null for %s, which is left out where it is not given, makes a request malformed", (_, name, path) => {
  const text = JSON.stringify(changed(requestVector(name), path, null));
  expect(parseExecutionRequest(text)).toMatchObject({ kind: "malformed" });
});

test("null is read where the protocol writes it", () => {
  const forge = { task: "print ten primes", backend: null, model: null };
  const request = {
    ...moteRequest("r"),
    tools: [{ alias: "/usr/bin/lint", hash: hash("3"), closure: null }],
    forge: null,
  };
  expect(parseExecutionRequest(JSON.stringify(request))).toMatchObject({ kind: "valid" });
  const forged = {
    ...request,
    mote: null,
    forge,
    tools: [],
    invocation: null,
    execution: { lane: "agent", requireHardwareIsolation: true },
  };
  expect(parseExecutionRequest(JSON.stringify(forged))).toMatchObject({ kind: "valid" });
});

test("what Rust does not call blank is not blank here", () => {
  expect(validateExecutionRequest(executionRequestSchema.parse(moteRequest("\ufeff")))).toEqual([]);
  expect(validateExecutionRequest(executionRequestSchema.parse(moteRequest("\u0085\u3000")))).toEqual([
    { code: "missing_identity", field: "id" },
  ]);
});

/** A copy with the member at a path replaced, or removed when there is no value. */
function changed(request: Record<string, unknown>, path: string, value: unknown): unknown {
  const names = path.split(".");
  const last = names.pop() ?? "";
  const parent = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], request);
  if (Array.isArray(parent) && value === undefined) parent.splice(Number(last), 1);
  else (parent as Record<string, unknown>)[last] = value;
  return request;
}
