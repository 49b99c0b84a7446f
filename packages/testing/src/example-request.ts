import type { ExecutionRequestInput } from "@cellkit/execution";

const hash = (digit: string) => `blake3:${digit.repeat(64)}`;

/**
 * A request that every dispatcher takes: a sealed image with one tool, up to a minute, 1 MiB, 64 KiB of output.
 *
 * @param change members that are to be others
 */
export function exampleRequest(
  id: string,
  change: Partial<ExecutionRequestInput> = {},
): ExecutionRequestInput {
  return {
    apiVersion: "celln.dev/v1alpha1",
    id,
    workload: { id: "lint", caller: "tests" },
    mote: { hash: hash("1") },
    tools: [{ alias: "/usr/bin/lint", hash: hash("3") }],
    invocation: { alias: "/usr/bin/lint", args: ["--strict"] },
    capabilities: { workspace: "read-only", timeoutMs: 60_000, memoryBytes: 1_048_576, outputBytes: 65_536 },
    execution: { lane: "tool", requireHardwareIsolation: true },
    ...change,
  };
}
