// What a harness may say, and what the request around it must be (execution API, section 11.2). Breaches are one problem.
import type { ExecutionRequest } from "./execution-request.ts";
import { isHash } from "./hashes.ts";
import { isBlank } from "./white-space.ts";

type Harness = NonNullable<ExecutionRequest["harness"]>;
type BorrowedTool = Harness["borrowedTools"][number];

const limits = {
  descriptionBytes: 512,
  modelBytes: 128,
  pathBytes: 256,
  textBytes: 2048,
  toolCallBytes: 65_536n,
  toolCallMs: 30_000n,
  toolCount: 16,
  maxCalls: 16n,
  maxTurns: 6n,
};

/** Whether a request's version and harness fit: `v1alpha1` has none, the other two each need their own. */
export function isHarnessValid(request: ExecutionRequest): boolean {
  const { harness } = request;
  if (harness == null) return request.apiVersion === "celln.dev/v1alpha1";
  return (
    isContractKept(request.apiVersion, harness) &&
    isHarnessComplete(harness) &&
    isRequestFitForHarness(request)
  );
}

function isContractKept(apiVersion: string, harness: Harness): boolean {
  if (apiVersion === "celln.dev/v1alpha2") return isReferenceHarness(harness);
  return apiVersion === "celln.dev/v1alpha3" && isJsonHarness(harness);
}

function isReferenceHarness({ contractVersion, json, borrowedTools }: Harness): boolean {
  return (
    contractVersion === "celln.reference-functions/v1" &&
    json == null &&
    borrowedTools.length === 2 &&
    borrowedTools.every((tool) => tool.jsonStdio == null)
  );
}

function isJsonHarness({ contractVersion, json, borrowedTools }: Harness): boolean {
  return (
    contractVersion === "celln.json-tools/v1" &&
    json != null &&
    utf8Bytes(json.system) <= limits.textBytes &&
    !json.system.includes("\0") &&
    within(json.maxTurns, 1n, limits.maxTurns) &&
    json.maxCalls <= limits.maxCalls &&
    borrowedTools.length <= limits.toolCount &&
    borrowedTools.every(isJsonTool)
  );
}

function isJsonTool({ path, jsonStdio }: BorrowedTool): boolean {
  return (
    path !== "/pilot-fetch" &&
    jsonStdio != null &&
    jsonStdio.abi === "celln.json-stdio/v1" &&
    isHash(jsonStdio.inputSchema) &&
    isHash(jsonStdio.outputSchema) &&
    within(jsonStdio.inputBytes, 1n, limits.toolCallBytes) &&
    within(jsonStdio.outputBytes, 1n, limits.toolCallBytes) &&
    within(jsonStdio.timeoutMs, 1n, limits.toolCallMs)
  );
}

function isHarnessComplete({ modelGrant, model, task, borrowedTools }: Harness): boolean {
  return (
    isHash(modelGrant.hash) &&
    within(utf8Bytes(model), 1, limits.modelBytes) &&
    !isBlank(task) &&
    utf8Bytes(task) <= limits.textBytes &&
    !task.includes("\0") &&
    borrowedTools.every(isBorrowedTool) &&
    areUnique(borrowedTools.map((tool) => tool.name)) &&
    areUnique(borrowedTools.map((tool) => tool.path))
  );
}

function isBorrowedTool({ name, path, hash, description }: BorrowedTool): boolean {
  return (
    /^[A-Za-z0-9_-]{1,64}$/.test(name) &&
    isToolPath(path) &&
    isHash(hash) &&
    within(utf8Bytes(description), 1, limits.descriptionBytes)
  );
}

function isToolPath(path: string): boolean {
  const segments = path.slice(1).split("/");
  return (
    path.startsWith("/") &&
    path.length <= limits.pathBytes &&
    segments.every((segment) => /^[A-Za-z0-9_.+-]+$/.test(segment) && segment !== "." && segment !== "..")
  );
}

function isRequestFitForHarness(request: ExecutionRequest): boolean {
  const { mote, forge, inputs, tools, invocation, execution, capabilities } = request;
  return (
    mote != null &&
    forge == null &&
    inputs.length === 0 &&
    tools.length === 1 &&
    tools[0]?.closure != null &&
    invocation != null &&
    invocation.args.length === 0 &&
    execution.lane === "agent" &&
    execution.requireHardwareIsolation &&
    capabilities.workspace === "none" &&
    capabilities.egress.length === 1
  );
}

function within<N extends number | bigint>(value: N, least: N, most: N): boolean {
  return value >= least && value <= most;
}

function areUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}

function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
