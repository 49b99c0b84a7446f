// How the executions of a test end, and the records that come of it (execution API, section 12).
import type { ExecutionAudit, ExecutionRecord, ExecutionRequest, Receipt } from "@cellkit/execution";
import { TestingOptionError } from "../errors.ts";
import { shown } from "./given.ts";

/** How an execution ended. `output` is what it wrote, cut to the `outputBytes` of its request. */
export type RunEnd =
  | { readonly kind: "succeeded"; readonly output?: string; readonly mediaType?: string }
  | {
      readonly kind: "failed";
      readonly reason?: string;
      readonly output?: string;
      readonly mediaType?: string;
    }
  /** Before anything ran: there is no receipt. */
  | { readonly kind: "refused"; readonly reason?: string }
  | { readonly kind: "cancelled"; readonly reason?: string };

const kinds = ["succeeded", "failed", "refused", "cancelled"] as const satisfies readonly RunEnd["kind"][];

/** An end as a test gave it. @param option what gave it @throws {@link TestingOptionError} when it is none */
export function checkedEnd(option: string, end: RunEnd): RunEnd {
  // A test need not be typed, and a function that forgets to return is typed well enough for JavaScript.
  const given: unknown = end;
  if (typeof given !== "object" || given === null || !("kind" in given)) {
    throw new TestingOptionError(option, `is ${shown(given)}; give an end, as { kind: "succeeded" }`);
  }
  if (!kinds.some((kind) => kind === given.kind)) {
    throw new TestingOptionError(option, `has the kind ${shown(given.kind)}; give ${kinds.join(", ")}`);
  }
  for (const [name, value] of Object.entries(given)) {
    if (["reason", "output", "mediaType"].includes(name) && !["string", "undefined"].includes(typeof value))
      throw new TestingOptionError(option, `has, as ${name}, ${shown(value)}; give a string`);
  }
  return end;
}

/** What a record is made from, beside the end. */
export interface RunFacts {
  readonly request: ExecutionRequest;
  readonly node: string;
  readonly cellId: string;
  readonly startedAt: string;
  readonly completedAt: string;
  /** BLAKE3 of bytes. */
  readonly identity: (bytes: Uint8Array) => string;
}

/** The final record of an execution. */
export function finalRecord(end: RunEnd, facts: RunFacts): ExecutionRecord {
  const { id } = facts.request;
  if (end.kind === "refused") {
    return { requestId: id, phase: "Refused", reason: end.reason ?? "refused before execution" };
  }
  const { reason } = { reason: undefined, ...end };
  const phase = { succeeded: "Succeeded", failed: "Failed", cancelled: "Cancelled" }[end.kind];
  const output = end.kind === "cancelled" ? undefined : outputOf(end, facts);
  const receipt: Receipt = {
    apiVersion: facts.request.apiVersion as Receipt["apiVersion"],
    requestId: id,
    phase: end.kind,
    node: facts.node,
    cellId: facts.cellId,
    resolved: resolved(facts),
    output: output?.object ?? null,
    startedAt: facts.startedAt,
    completedAt: facts.completedAt,
  };
  return {
    requestId: id,
    phase,
    ...(reason === undefined ? {} : { reason }),
    ...(output === undefined ? {} : { output: output.text }),
    receipt,
  };
}

function outputOf({ output, mediaType }: { output?: string; mediaType?: string }, facts: RunFacts) {
  if (output === undefined) return undefined;
  const limit = facts.request.capabilities.outputBytes;
  const whole = new TextEncoder().encode(output);
  const bytes = BigInt(whole.length) > limit ? whole.subarray(0, Number(limit)) : whole;
  const object = {
    hash: facts.identity(bytes),
    mediaType: mediaType ?? "application/octet-stream",
    bytes: BigInt(bytes.length),
  };
  return { text: new TextDecoder().decode(bytes), object };
}

/**
 * What ran. Every caller wants exactly one tool (section 12.2): the invoked one; of a mote that names none the mote, which is then all
 * that can run; of a forge one that was made for this request.
 */
function resolved({ request, identity }: RunFacts): Receipt["resolved"] {
  const { tools, invocation, mote, inputs } = request;
  const tool = tools.find(({ alias }) => alias === invocation?.alias) ?? tools[0] ?? mote;
  return {
    mote: mote?.hash.toLowerCase() ?? null,
    tools: [tool?.hash.toLowerCase() ?? identity(new TextEncoder().encode(`tool of ${request.id}`))],
    inputs: inputs.map(({ hash }) => hash.toLowerCase()),
  };
}

/** The longest list of events that an audit has. */
const maxEvents = 32;

export function firstAudit(request: ExecutionRequest, node: string, at: string): ExecutionAudit {
  return {
    apiVersion: "celln.dev/audit-v1alpha1",
    requestId: request.id,
    caller: request.workload.caller,
    workload: request.workload.id,
    node,
    events: [{ sequence: 0n, at, phase: "Admitting" }],
    execution: null,
    receipt: null,
  };
}

/** The audit after a record changed. */
export function nextAudit(audit: ExecutionAudit, record: ExecutionRecord, at: string): ExecutionAudit {
  const event = { sequence: BigInt(audit.events.length), at, phase: record.phase };
  const { receipt } = record;
  return {
    ...audit,
    events: audit.events.length < maxEvents ? [...audit.events, event] : audit.events,
    execution: receipt === undefined ? audit.execution : executionOf(receipt),
    receipt: receipt ?? null,
  };
}

function executionOf({ cellId, phase, resolved }: Receipt): ExecutionAudit["execution"] {
  return {
    cellId,
    substrate: "kvm",
    pilot: null,
    granted: {},
    inputs: resolved.inputs,
    broker: { requests: 0n, denied: 0n, responseBytes: 0n },
    exitCode: { succeeded: 0, failed: 1, cancelled: null }[phase],
    signal: phase === "cancelled" ? "SIGKILL" : null,
    watchdogStopped: phase === "cancelled",
  };
}
