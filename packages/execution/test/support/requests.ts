import type { ExecutionRequestInput } from "../../src/index.ts";

export const hash = (digit: string) => `blake3:${digit.repeat(64)}`;

/** A request for a sealed image with one tool. */
export function moteRequest(id: string, change: Partial<ExecutionRequestInput> = {}): ExecutionRequestInput {
  return {
    apiVersion: "celln.dev/v1alpha1",
    id,
    workload: { id: "lint", caller: "tests" },
    mote: { hash: hash("1") },
    tools: [{ alias: "/usr/bin/lint", hash: hash("3") }],
    invocation: { alias: "/usr/bin/lint", args: ["--strict"] },
    capabilities: { workspace: "read-only", timeoutMs: 60_000, memoryBytes: 134_217_728, outputBytes: 32 },
    execution: { lane: "tool", requireHardwareIsolation: true },
    ...change,
  };
}

/** The receipt of {@link moteRequest}. */
export function receipt(id: string, change: Record<string, unknown> = {}) {
  return {
    apiVersion: "celln.dev/v1alpha1",
    requestId: id,
    phase: "succeeded",
    node: "kvm-node-a",
    cellId: "3f9c1a2b7d44",
    resolved: { mote: hash("1"), tools: [hash("3")], inputs: [] as string[] },
    output: { hash: hash("9"), mediaType: "text/plain", bytes: 6 },
    startedAt: "2026-09-07T12:00:00Z",
    completedAt: "2026-09-07T12:00:02Z",
    ...change,
  };
}

/** A final record of {@link moteRequest}. */
export function succeeded(id: string) {
  return { requestId: id, phase: "Succeeded", output: "hello\n", receipt: receipt(id) };
}
