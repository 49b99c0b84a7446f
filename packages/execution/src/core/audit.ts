// The audit of an execution (execution API, section 12.3): who, what and when, never arguments, task, input or output.
import { z } from "zod";
import { u64 } from "./integers.ts";
import { instantText, receiptSchema } from "./record.ts";

const maxEvents = 32;

const execution = z.object({
  cellId: z.string(),
  substrate: z.unknown(),
  pilot: z.unknown(),
  granted: z.unknown(),
  inputs: z.unknown(),
  broker: z.object({ requests: u64, denied: u64, responseBytes: u64 }),
  exitCode: z.int().nullable(),
  signal: z.union([z.int(), z.string()]).nullable(),
  watchdogStopped: z.boolean(),
});

/** An audit. Members whose form is not specified (`substrate`, `pilot`, `granted`, `inputs`) are passed on; unknown ones are left out. */
export const auditSchema = z.object({
  apiVersion: z.literal("celln.dev/audit-v1alpha1"),
  requestId: z.string(),
  caller: z.string(),
  workload: z.string(),
  node: z.string(),
  events: z.array(z.object({ sequence: u64, at: instantText, phase: z.string() })).max(maxEvents),
  execution: execution.nullable(),
  receipt: receiptSchema.nullable(),
});
/** An audit as it was read: at most 32 events in the order of `sequence`; `execution` and `receipt` are null while there is none. */
export type ExecutionAudit = z.output<typeof auditSchema>;
