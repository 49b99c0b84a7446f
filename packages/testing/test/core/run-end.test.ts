import type { ExecutionRequestInput } from "@cellkit/execution";
import { parseExecutionRequest } from "@cellkit/execution";
import { expect, it } from "vitest";
import { finalRecord } from "../../src/core/run-end.ts";
import { exampleRequest } from "../../src/index.ts";

const made = `blake3:${"f".repeat(64)}`;
const hash = (digit: string) => `blake3:${digit.repeat(64)}`;

function toolsOf(input: ExecutionRequestInput): readonly string[] | undefined {
  const parsed = parseExecutionRequest(Buffer.from(JSON.stringify(input)));
  if (parsed.kind !== "valid") throw new TypeError(JSON.stringify(parsed));
  const at = "2026-11-30T00:00:00Z";
  const facts = { request: parsed.request, node: "n", cellId: "c", startedAt: at, completedAt: at };
  return finalRecord({ kind: "succeeded" }, { ...facts, identity: () => made }).receipt?.resolved.tools;
}

it.each([
  ["the invoked tool", {}, [hash("3")]],
  ["the only tool when none is invoked", { invocation: null }, [hash("3")]],
  ["the mote when it names no tool: nothing is made up", { tools: [], invocation: null }, [hash("1")]],
  [
    "what was forged",
    { mote: null, tools: [], invocation: null, forge: { task: "Print a prime number." } },
    [made],
  ],
] as const)("a receipt's one tool is %s", (_what, change, tools) => {
  const { execution } = exampleRequest("a");
  const lane = "forge" in change ? "agent" : execution.lane;
  expect(toolsOf(exampleRequest("a", { ...change, execution: { ...execution, lane } } as never))).toEqual(
    tools,
  );
});
