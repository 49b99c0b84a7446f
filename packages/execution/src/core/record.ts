// Execution records and receipts (execution API, sections 12.1 and 12.2).
import { z } from "zod";
import { requestVersions } from "./execution-request.ts";
import { identity } from "./hashes.ts";
import { parseInstant } from "./instant.ts";
import { u64 } from "./integers.ts";

/** The phases after which a record does not change. */
export const terminalPhases = ["Succeeded", "Failed", "Refused", "Cancelled"] as const;
export type TerminalPhase = (typeof terminalPhases)[number];

/** A time as receipts write it: RFC 3339 with an offset, any number of fraction digits. */
export const instantText = z
  .string()
  .refine((text) => parseInstant(text) !== undefined, "is no RFC 3339 time");

const output = z.strictObject({ hash: identity, mediaType: z.string(), bytes: u64 });

/** What a dispatcher vouches for after a sandbox ran. A member that is not known is refused: it could change what the rest means. */
export const receiptSchema = z.strictObject({
  apiVersion: z.enum(requestVersions),
  requestId: z.string(),
  phase: z.enum(["succeeded", "failed", "cancelled"]),
  node: z.string(),
  cellId: z.string(),
  resolved: z.strictObject({
    mote: identity.nullable(),
    tools: z.array(identity),
    inputs: z.array(identity),
  }),
  output: output.nullable(),
  startedAt: instantText,
  completedAt: instantText,
});
export type Receipt = z.output<typeof receiptSchema>;

/**
 * What a dispatcher knows about an execution. `phase` is any text: one that is not terminal, known or not, means that it
 * goes on. `output` is for display only and may be longer than the bytes that were produced. Unknown members are left out.
 */
export const recordSchema = z.object({
  requestId: z.string(),
  phase: z.string().min(1),
  reason: z.string().optional(),
  output: z.string().optional(),
  receipt: receiptSchema.optional(),
});
export type ExecutionRecord = z.output<typeof recordSchema>;

/** A record that does not change any more. */
export type TerminalRecord = ExecutionRecord & { readonly phase: TerminalPhase };

/** Whether a record is final. Every phase that is not known counts as active: keep asking. */
export function isTerminal(record: ExecutionRecord): record is TerminalRecord {
  const terminal: readonly string[] = terminalPhases;
  return terminal.includes(record.phase);
}
