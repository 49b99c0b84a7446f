// Execution records and receipts (execution API, sections 12.1 and 12.2).
import { z } from "zod";
import { identity } from "./hashes.ts";
import { parseInstant } from "./instant.ts";
import { u64 } from "./integers.ts";

/** The phases after which a record does not change. */
export const terminalPhases = ["Succeeded", "Failed", "Refused", "Cancelled"] as const;
/** How an execution can end. `Refused` and an early `Failed` or `Cancelled` ran nothing. */
export type TerminalPhase = (typeof terminalPhases)[number];

/** Longer than any version that there is, or is to be expected. */
const maxVersionCharacters = 128;

/** A time as receipts write it: RFC 3339 with an offset, any number of fraction digits. */
export const instantText = z
  .string()
  .refine((text) => parseInstant(text) !== undefined, "is no RFC 3339 time");

const output = z.strictObject({ hash: identity, mediaType: z.string(), bytes: u64 });

/**
 * What a dispatcher vouches for after a sandbox ran. A member that is not known is refused: it could change what the rest means.
 * `apiVersion` is any text of at most 128 characters here: a receipt has the version of its request, which may be newer than this
 * package.
 */
export const receiptSchema = z.strictObject({
  apiVersion: z.string().min(1).max(maxVersionCharacters),
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
/**
 * A receipt as it was read (execution API, section 12.2): which node and sandbox ran what, from when to when, and the identity of
 * its output. `resolved.mote` is null for forge, `output` when nothing was produced; bytes are bigints.
 */
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
/**
 * A record as it was read (execution API, section 12.1). With an active phase only `requestId` and `phase` say anything; `reason` is for
 * people; `receipt` is there when a sandbox ran.
 */
export type ExecutionRecord = z.output<typeof recordSchema>;

/** A record that does not change any more. */
export type TerminalRecord = ExecutionRecord & { readonly phase: TerminalPhase };

/** Whether a record is final. Every phase that is not known counts as active: keep asking. */
export function isTerminal(record: ExecutionRecord): record is TerminalRecord {
  const terminal: readonly string[] = terminalPhases;
  return terminal.includes(record.phase);
}
