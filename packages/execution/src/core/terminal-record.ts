// When the end of an execution may be believed (execution API, section 12.2).
import type { ExecutionRequest } from "./execution-request.ts";
import { compareInstants, parseInstant } from "./instant.ts";
import { type ExecutionRecord, isTerminal, type Receipt } from "./record.ts";
import { isBlank } from "./white-space.ts";

/** A display text may be this many times as long as the bytes: a byte that is no UTF-8 becomes a character of three. */
const displayRatio = 3n;

/** What a final record has to fit: all of a request, or of one that is newer than this package its version, or nothing. */
export interface Expectation {
  /** As the bytes that were sent name it. */
  readonly apiVersion?: string | undefined;
  readonly request?: ExecutionRequest | undefined;
}

/**
 * What is wrong with a final record, each fault in words; empty when it is accepted. Without the request, only what a
 * record says of itself can be checked.
 */
export function terminalRecordFaults(
  record: ExecutionRecord,
  id: string,
  { apiVersion, request }: Expectation,
): string[] {
  const { receipt } = record;
  const isOtherVersion =
    apiVersion !== undefined && receipt !== undefined && receipt.apiVersion !== apiVersion;
  return [
    ...fault(!isTerminal(record), `phase ${shown(record.phase)} is not final`),
    ...fault(record.requestId !== id, "it is of another execution"),
    ...fault(record.phase === "Succeeded" && receipt === undefined, "it succeeded without a receipt"),
    ...fault(record.output !== undefined && receipt?.output == null, "it shows output that has no identity"),
    ...(receipt === undefined ? [] : receiptFaults(record, receipt)),
    ...fault(isOtherVersion, "its receipt has another version than the request"),
    ...(request === undefined ? [] : requestFaults(record, request)),
  ];
}

function receiptFaults(record: ExecutionRecord, receipt: Receipt): string[] {
  const [started, completed] = [parseInstant(receipt.startedAt), parseInstant(receipt.completedAt)];
  const ordered =
    started !== undefined && completed !== undefined && compareInstants(completed, started) >= 0;
  return [
    ...fault(receipt.requestId !== record.requestId, "its receipt is of another execution"),
    ...fault(receipt.phase !== record.phase.toLowerCase(), "its receipt tells another end"),
    ...fault(isBlank(receipt.node) || isBlank(receipt.cellId), "its receipt names no node or sandbox"),
    ...fault(!ordered, "its receipt completed before it started"),
    ...fault(receipt.resolved.tools.length !== 1, "its receipt has not exactly one tool"),
  ];
}

function requestFaults(record: ExecutionRecord, request: ExecutionRequest): string[] {
  const { outputBytes } = request.capabilities;
  const displayed = BigInt(new TextEncoder().encode(record.output ?? "").length);
  const faults = fault(displayed > outputBytes * displayRatio, "it shows more output than was allowed");
  const { receipt } = record;
  if (receipt === undefined) return faults;
  const { mote, tools, inputs } = receipt.resolved;
  const asked = request.inputs.map((input) => input.hash.toLowerCase());
  const tool = toolHash(request);
  return [
    ...faults,
    ...fault(mote !== (request.mote?.hash.toLowerCase() ?? null), "its receipt has another mote"),
    ...fault(tool !== undefined && tools.some((used) => used !== tool), "its receipt has another tool"),
    ...fault(inputs.join(" ") !== asked.join(" "), "its receipt has other inputs"),
    ...fault((receipt.output?.bytes ?? 0n) > outputBytes, "its receipt has more output than was allowed"),
  ];
}

/**
 * The tool that a run of this request has to use: the one that it invokes, or has alone. Undefined where it names none and the
 * dispatcher chooses: for forge, which makes one, and for an image that brings its own.
 */
function toolHash({ forge, invocation, tools }: ExecutionRequest): string | undefined {
  if (forge != null) return undefined;
  const [first, ...more] = tools;
  const only = more.length === 0 ? first : undefined;
  const used = invocation == null ? only : tools.find((tool) => tool.alias === invocation.alias);
  return used?.hash.toLowerCase();
}

function fault(when: boolean, text: string): string[] {
  return when ? [text] : [];
}

function shown(phase: string): string {
  return JSON.stringify(phase.slice(0, 32));
}
