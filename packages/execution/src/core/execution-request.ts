// The execution request, in all three versions. Here its shape: every object refuses members that it does not know, since a
// dispatcher does. What a well-formed request may say is in request-problems.ts.
import { z } from "zod";
import { u64 } from "./integers.ts";

/** The request versions that exist. */
export const requestVersions = ["celln.dev/v1alpha1", "celln.dev/v1alpha2", "celln.dev/v1alpha3"] as const;

const reference = z.strictObject({ hash: z.string() });

const jsonStdio = z.strictObject({
  abi: z.string(),
  inputSchema: z.string(),
  outputSchema: z.string(),
  inputBytes: u64,
  outputBytes: u64,
  timeoutMs: u64,
});

const borrowedTool = z.strictObject({
  name: z.string(),
  path: z.string(),
  hash: z.string(),
  description: z.string(),
  jsonStdio: jsonStdio.optional(),
});

const harness = z.strictObject({
  contractVersion: z.string(),
  modelGrant: reference,
  model: z.string(),
  task: z.string(),
  borrowedTools: z.array(borrowedTool),
  json: z.strictObject({ system: z.string(), maxTurns: u64, maxCalls: u64 }).optional(),
});

const forge = z.strictObject({
  task: z.string(),
  backend: z.enum(["anthropic", "openai", "deepseek", "local"]).nullish(),
  model: z.string().nullish(),
});

const input = z.strictObject({ name: z.string(), hash: z.string(), mediaType: z.string(), bytes: u64 });
const tool = z.strictObject({ alias: z.string(), hash: z.string(), closure: reference.nullish() });

/**
 * The shape of an execution request. Optional lists become empty lists, 64-bit integers become bigints. Null is read as absent
 * where the protocol has it (sources, closure, invocation, forge's backend and model), and refused elsewhere. `apiVersion` is any text
 * here: an unknown one is a problem that {@link validateExecutionRequest} names, beside all others.
 */
export const executionRequestSchema = z.strictObject({
  apiVersion: z.string(),
  id: z.string(),
  workload: z.strictObject({ id: z.string(), caller: z.string() }),
  harness: harness.optional(),
  mote: reference.nullish(),
  forge: forge.nullish(),
  inputs: z.array(input).default([]),
  tools: z.array(tool).default([]),
  invocation: z.strictObject({ alias: z.string(), args: z.array(z.string()).default([]) }).nullish(),
  capabilities: z.strictObject({
    workspace: z.enum(["none", "read-only", "read-write"]),
    egress: z.array(z.string()).default([]),
    allowInsecure: z.boolean().default(false),
    timeoutMs: u64,
    memoryBytes: u64,
    outputBytes: u64,
  }),
  execution: z.strictObject({ lane: z.enum(["tool", "agent"]), requireHardwareIsolation: z.boolean() }),
});

/** A request as it was read: lists are there, 64-bit integers are bigints. */
export type ExecutionRequest = z.output<typeof executionRequestSchema>;

/** A request as you write it: `number` or `bigint` for integers, lists may be left out. */
export type ExecutionRequestInput = z.input<typeof executionRequestSchema>;
