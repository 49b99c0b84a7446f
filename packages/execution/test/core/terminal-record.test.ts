import { expect, test } from "vitest";
import {
  acceptTerminalRecord,
  type ExecutionRequestInput,
  executionRequestSchema,
  RecordRejectedError,
  recordSchema,
} from "../../src/index.ts";
import { hash, moteRequest, receipt, succeeded } from "../support/requests.ts";

const id = "run-1";
const forge: Partial<ExecutionRequestInput> = {
  forge: { task: "print ten primes" },
  mote: null,
  tools: [],
  invocation: null,
  execution: { lane: "agent", requireHardwareIsolation: true },
};

function faults(record: unknown, change: Partial<ExecutionRequestInput> = {}): string[] {
  const request = executionRequestSchema.parse(moteRequest(id, change));
  const read = recordSchema.parse(record);
  try {
    expect(acceptTerminalRecord(read, id, request)).toBe(read);
    return [];
  } catch (error) {
    if (error instanceof RecordRejectedError) return [...error.faults];
    throw error;
  }
}

const withReceipt = (change: Record<string, unknown>) => ({ ...succeeded(id), receipt: receipt(id, change) });
const upper = (digit: string) => `blake3:${digit.toUpperCase().repeat(64)}`;
const twoTools = [
  { alias: "/bin/first", hash: hash("4") },
  { alias: "/usr/bin/lint", hash: hash("3") },
];
const resolved = (change: Record<string, unknown>) =>
  withReceipt({ resolved: { mote: hash("1"), tools: [hash("3")], inputs: [], ...change } });

test.each<[string, unknown, Partial<ExecutionRequestInput>]>([
  ["a success", succeeded(id), {}],
  ["a success without output", withReceipt({ output: null, ...{} }), {}],
  ["a failure without receipt", { requestId: id, phase: "Failed", reason: "no sandbox" }, {}],
  [
    "a failure with one",
    { ...succeeded(id), phase: "Failed", receipt: receipt(id, { phase: "failed" }) },
    {},
  ],
  ["a refusal", { requestId: id, phase: "Refused", reason: "policy" }, {}],
  ["a cancellation before a sandbox", { requestId: id, phase: "Cancelled" }, {}],
  ["a run that ended in the second it began", withReceipt({ completedAt: "2026-09-07T12:00:00.0Z" }), {}],
  [
    "upper-case hashes in the request",
    resolved({ mote: hash("b"), tools: [hash("c")] }),
    { mote: { hash: upper("b") }, tools: [{ alias: "/usr/bin/lint", hash: upper("c") }] },
  ],
  ["the only tool without an invocation", succeeded(id), { invocation: null }],
  ["the invoked one of two tools", succeeded(id), { tools: twoTools }],
  [
    "any tool, where there are two and none is invoked",
    resolved({ tools: [hash("f")] }),
    { tools: twoTools, invocation: null },
  ],
  [
    "a tool that the dispatcher chose, where the request has none",
    resolved({ tools: [hash("f")] }),
    { tools: [], invocation: null },
  ],
  [
    "output of exactly what was allowed",
    withReceipt({ output: { hash: hash("9"), mediaType: "a/b", bytes: 32 } }),
    {},
  ],
  ["display of three times that", { ...succeeded(id), output: "\ufffd".repeat(32) }, {}],
  ["forge, where the dispatcher made the tool", resolved({ mote: null, tools: [hash("f")] }), forge],
])("%s is accepted", (name, record, change) => {
  const fitting = name === "a success without output" ? { ...(record as object), output: undefined } : record;
  expect(faults(fitting, change)).toEqual([]);
});

test.each<[string, unknown, string]>([
  ["an active record", { requestId: id, phase: "Running" }, 'phase "Running" is not final'],
  ["a record of another run", { requestId: "run-2", phase: "Failed" }, "it is of another execution"],
  ["a success without receipt", { requestId: id, phase: "Succeeded" }, "it succeeded without a receipt"],
  ["a receipt of another run", withReceipt({ requestId: "run-2" }), "its receipt is of another execution"],
  ["a receipt with another end", withReceipt({ phase: "failed" }), "its receipt tells another end"],
  ["a refusal with a receipt", { ...succeeded(id), phase: "Refused" }, "its receipt tells another end"],
  ["a blank node", withReceipt({ node: " " }), "its receipt names no node or sandbox"],
  ["a blank sandbox", withReceipt({ cellId: "" }), "its receipt names no node or sandbox"],
  [
    "an end before the start",
    withReceipt({ completedAt: "2026-09-07T11:59:59.999Z" }),
    "its receipt completed before it started",
  ],
  [
    "another version",
    withReceipt({ apiVersion: "celln.dev/v1alpha2" }),
    "its receipt has another version than the request",
  ],
  ["two tools", resolved({ tools: [hash("3"), hash("3")] }), "its receipt has not exactly one tool"],
  ["no tool", resolved({ tools: [] }), "its receipt has not exactly one tool"],
  ["another tool", resolved({ tools: [hash("4")] }), "its receipt has another tool"],
  ["another mote", resolved({ mote: hash("2") }), "its receipt has another mote"],
  ["no mote", resolved({ mote: null }), "its receipt has another mote"],
  ["inputs that were not given", resolved({ inputs: [hash("5")] }), "its receipt has other inputs"],
  [
    "more output than allowed",
    withReceipt({ output: { hash: hash("9"), mediaType: "a/b", bytes: 33 } }),
    "its receipt has more output than was allowed",
  ],
  [
    "more display than allowed",
    { ...succeeded(id), output: "x".repeat(97) },
    "it shows more output than was allowed",
  ],
  ["display without an output", withReceipt({ output: null }), "it shows output that has no identity"],
])("%s is refused", (_, record, fault) => {
  expect(faults(record)).toEqual([fault]);
});

test.each<[string, unknown, Partial<ExecutionRequestInput>, string]>([
  [
    "another than the only tool",
    resolved({ tools: [hash("4")] }),
    { invocation: null },
    "its receipt has another tool",
  ],
  [
    "the tool that was not invoked",
    resolved({ tools: [hash("4")] }),
    { tools: twoTools },
    "its receipt has another tool",
  ],
  [
    "no tool where the request has none",
    resolved({ tools: [] }),
    { tools: [], invocation: null },
    "its receipt has not exactly one tool",
  ],
])("%s is refused", (_, record, change, fault) => {
  expect(faults(record, change)).toEqual([fault]);
});

test("a receipt may have any version, of at most 128 characters, and has to have the request's", () => {
  const newer = recordSchema.parse(withReceipt({ apiVersion: "celln.dev/v2" }));
  expect(acceptTerminalRecord(newer, id)).toBe(newer);
  for (const apiVersion of ["", "v".repeat(129), 2]) {
    expect(recordSchema.safeParse(withReceipt({ apiVersion })).success).toBe(false);
  }
});

test("inputs have to be the same, in order", () => {
  const inputs = ["a", "b"].map((name) => ({
    name,
    hash: upper(name),
    mediaType: "a/b",
    bytes: 1,
  }));
  expect(faults(resolved({ inputs: [hash("a"), hash("b")] }), { inputs })).toEqual([]);
  expect(faults(resolved({ inputs: [hash("b"), hash("a")] }), { inputs })).toEqual([
    "its receipt has other inputs",
  ]);
});

test.each<[string, unknown]>([
  ["an unknown member in the receipt", withReceipt({ attested: true })],
  ["an upper-case identity", withReceipt({ output: { hash: hash("A"), mediaType: "a/b", bytes: 1 } })],
  ["a time without offset", withReceipt({ startedAt: "2026-09-07T12:00:00" })],
  ["null for what may be absent", { requestId: id, phase: "Failed", receipt: null }],
  ["no phase", { requestId: id }],
])("%s makes a record unreadable", (_, record) => {
  expect(recordSchema.safeParse(record).success).toBe(false);
});

test("unknown members of a record are left out", () => {
  expect(recordSchema.parse({ requestId: id, phase: "Running", queue: 7 })).toEqual({
    requestId: id,
    phase: "Running",
  });
});
