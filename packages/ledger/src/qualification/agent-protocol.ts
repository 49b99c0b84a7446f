/**
 * What a qualification says to its agents: a JSON object a line, a request with an id and one answer with the same id. An
 * agent works only below a probe of its own making beside the ledger whose address it was started with: a request names the
 * probe and files in it, and never a path.
 */
import { z } from "zod";

/** The longest line, either way. */
export const MAX_LINE_BYTES = 262_144;

/** Probes are directories, prefixes or names that begin so, whatever else lies there. */
const probePattern = /^cellkit-qualify-[0-9a-f]{12}$/;

/** Whether a name is that of a probe. */
export function isProbe(name: string): boolean {
  return probePattern.test(name);
}

const fileName = z.string().regex(/^[a-z0-9][a-z0-9.-]{0,63}$/);
const ids = z.array(z.string().min(1).max(200)).min(1).max(1_000);
const origin = z.string().max(1_024);
const body = z.string().max(1_000);
const count = z.number().int().min(1).max(10_000);
const waitMs = z.number().int().min(0).max(60_000);
const how = z.enum(["exclusive", "link"]);
const publication = z.enum(["rename", "link"]);

/** Every request, by its `op`. */
export const requestSchema = z.discriminatedUnion("op", [
  // First of all: which probe; then who the agent is.
  z.strictObject({ op: z.literal("begin"), probe: z.string().regex(probePattern) }),
  // The ledger in the probe.
  z.strictObject({ op: z.literal("open"), requireExisting: z.boolean() }),
  z.strictObject({ op: z.literal("close") }),
  z.strictObject({ op: z.literal("claim"), ids, body, owner: origin }),
  z.strictObject({ op: z.literal("claimOn"), prefix: fileName, body, owner: origin }),
  z.strictObject({ op: z.literal("claimed") }),
  z.strictObject({ op: z.literal("lookup"), ids }),
  z.strictObject({ op: z.literal("count") }),
  // The ledger's lock file.
  z.strictObject({ op: z.literal("lock"), waitMs }),
  z.strictObject({ op: z.literal("unlock") }),
  z.strictObject({ op: z.literal("contend") }),
  z.strictObject({ op: z.literal("contendFcntl") }),
  z.strictObject({ op: z.literal("increment"), count }),
  // Files in the probe.
  z.strictObject({ op: z.literal("race"), prefix: fileName, count, how, partyCount: count }),
  z.strictObject({ op: z.literal("put"), name: fileName, text: z.string().max(10_000) }),
  z.strictObject({ op: z.literal("get"), name: fileName }),
  z.strictObject({ op: z.literal("look"), name: fileName }),
  z.strictObject({ op: z.literal("publish"), prefix: fileName, count, how: publication }),
  z.strictObject({ op: z.literal("watch"), prefix: fileName, count, how: publication }),
  z.strictObject({ op: z.literal("sync") }),
  z.strictObject({ op: z.literal("times"), prefix: fileName, count }),
]);

/** One of them. */
export type AgentRequest = z.output<typeof requestSchema>;

/** How a claim went at an agent. */
const claimAnswerSchema = z.union([
  z.strictObject({ kind: z.enum(["new", "existing"]), backend: z.string() }),
  z.strictObject({ kind: z.enum(["conflict", "full"]) }),
  z.strictObject({ kind: z.literal("error"), code: z.string(), message: z.string() }),
]);

/** One of them. */
export type ClaimAnswer = z.output<typeof claimAnswerSchema>;

const milliseconds = z.number();
const outcome = z.strictObject({ kind: z.enum(["free", "busy"]), ms: milliseconds });
const nothing = z.strictObject({});

/** What is answered to each request. */
export const answerSchemas = {
  begin: z.strictObject({
    pid: z.number().int(),
    host: z.string(),
    node: z.string(),
    /** The same for processes of one kernel, however many host names its containers have. */
    machine: z.string().max(200),
    /** Of a directory: whether the probe is there, and `f_type` of its statfs. */
    seesProbe: z.boolean().optional(),
    fileSystem: z.number().optional(),
    timeMs: z.number(),
  }),
  open: z.strictObject({ ledgerId: z.string() }),
  close: nothing,
  claim: z.strictObject({ answers: z.array(claimAnswerSchema) }),
  claimOn: nothing,
  /** Ends what `claimOn` began; answers all that were acknowledged. */
  claimed: z.strictObject({ ids: z.array(z.string()) }),
  lookup: z.strictObject({ owners: z.array(z.string().nullable()) }),
  count: z.strictObject({ count: z.number() }),
  lock: outcome,
  unlock: nothing,
  contend: outcome,
  contendFcntl: outcome,
  increment: z.strictObject({ overlapCount: z.number() }),
  race: z.strictObject({ won: z.array(z.number()) }),
  put: nothing,
  get: z.strictObject({ text: z.string().nullable() }),
  look: z.strictObject({
    mtimeNs: z.string().nullable(),
    sizeBytes: z.number(),
    directoryMtimeNs: z.string(),
    listed: z.boolean(),
  }),
  publish: nothing,
  watch: z.strictObject({ readCount: z.number(), missingCount: z.number(), tornCount: z.number() }),
  sync: z.strictObject({ fileMs: milliseconds, directoryMs: milliseconds, problem: z.string().optional() }),
  times: z.strictObject({
    mtimesNs: z.array(z.string()),
    skewMs: milliseconds,
  }),
} as const satisfies Record<AgentRequest["op"], z.ZodType>;

/** The answer to a request of that kind. */
export type AgentAnswer<K extends AgentRequest["op"]> = z.output<(typeof answerSchemas)[K]>;

/** What an agent writes: an answer, a failure, or an id that was acknowledged to `claimOn`. */
export const replySchema = z.union([
  z.strictObject({ id: z.number().int(), ok: z.unknown() }),
  z.strictObject({ id: z.number().int(), error: z.strictObject({ code: z.string(), message: z.string() }) }),
  z.strictObject({ acknowledged: z.string() }),
]);
