import { type ExecutionRequestInput, executionId } from "@cellkit/execution";

/** One piece of work. Its id comes from what it is, so that the same work never has two. */
export function primes(batch: string, count: number): ExecutionRequestInput {
  return {
    apiVersion: "celln.dev/v1alpha1",
    id: executionId("primes", batch, String(count)),
    workload: { id: "primes", caller: "examples/controller" },
    forge: { task: `Print the first ${count} prime numbers, one per line.` },
    capabilities: { workspace: "none", timeoutMs: 90_000, memoryBytes: 268_435_456, outputBytes: 65_536 },
    execution: { lane: "agent", requireHardwareIsolation: true },
  };
}
