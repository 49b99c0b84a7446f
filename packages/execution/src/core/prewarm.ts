// What a dispatcher saw when it was asked to prepare a template (execution API, section 10.6). It authorizes nothing.
import { z } from "zod";
import { identity } from "./hashes.ts";

/** An observation: void as soon as `processEpoch` changes, which it does with every start of the dispatcher. */
export const prewarmSchema = z.object({
  apiVersion: z.literal("celln.dev/artifact-prewarm-v1"),
  node: z.string(),
  processEpoch: identity,
  requestHash: identity,
  verification: z.unknown(),
  warmState: z.literal("present-at-observation"),
  validity: z.literal("observation-only"),
  executionAuthorized: z.literal(false),
  conformance: z.literal("not_checked"),
  artifactReadiness: z.literal("not_checked"),
});
/** An observation as it was read. It reserves nothing; keep `processEpoch` to see that it is void. */
export type PrewarmObservation = z.output<typeof prewarmSchema>;
