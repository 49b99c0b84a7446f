/** One writer, one step after the other: what any bucket must do before races are worth a look. */
import type { Bucket, ConditionalWrite } from "../bucket.ts";
import { BucketAnswerError } from "../errors.ts";

/** A rule that every bucket keeps, and whether this one did. */
export interface ProbeStep {
  /** The rule, as a sentence about the bucket. */
  rule: string;
  result: "held" | "violated" | "unknown";
  /** What it did instead, or why that could not be found out. */
  detail?: string | undefined;
}

/** Answers what was done instead of what the rule says; undefined if it held. */
type Check = (state: ProbeState, signal: AbortSignal) => Promise<string | undefined>;

interface ProbeState {
  bucket: Bucket;
  key: string;
  /** ETags of the contents written, by content. */
  etags: Map<string, string>;
}

const FIRST = "the first content of a probe";
const SECOND = "the second content of a probe, longer than the first";
const STALE = "a content under a condition that does not hold";

const steps: readonly (readonly [rule: string, check: Check])[] = [
  ["creates a key that has no object", create(FIRST, "applied")],
  ["reads what was created, at once", read(FIRST)],
  ["refuses to create a key that has an object", create(STALE, "rejected")],
  ["keeps the object when a creation is refused", read(FIRST)],
  ["replaces an object whose ETag is given", replace(SECOND, FIRST, "applied")],
  ["reads what was replaced, at once", read(SECOND)],
  ["refuses to replace an object under an ETag of before", replace(STALE, FIRST, "rejected")],
  ["keeps the object when a replacement is refused", read(SECOND)],
  ["reads ranges", readRange],
  ["lists what is there, with its ETag and size", list],
  ["has nothing at a key that was deleted", remove],
  ["refuses to replace what is no longer there", replace(STALE, SECOND, "rejected")],
  ["creates a key again whose object was deleted", create(FIRST, "applied")],
];

/** How many steps {@link probeBucket} takes. */
export const PROBE_STEP_COUNT: number = steps.length;

/**
 * Goes through the rules in order, on one key. Ends at the first that could not be tried; what comes after it is `unknown` too. The
 * object is removed at the end, if the bucket lets us.
 * @param key that nobody else uses
 */
export async function probeBucket(
  bucket: Bucket,
  key: string,
  signal: AbortSignal,
  onStep: (step: ProbeStep) => void,
): Promise<ProbeStep[]> {
  const state: ProbeState = { bucket, key, etags: new Map() };
  const found: ProbeStep[] = [];
  let trouble: string | undefined;
  for (const [rule, check] of steps) {
    if (trouble !== undefined) {
      found.push({ rule, result: "unknown", detail: "not tried" });
      continue;
    }
    const step = await check(state, signal).then(
      (detail): ProbeStep =>
        detail === undefined ? { rule, result: "held" } : { rule, result: "violated", detail },
      (error: unknown): ProbeStep => {
        // The store answered, but that it does not do this: no reason to stop, and none to ask again.
        if (error instanceof BucketAnswerError) return { rule, result: "violated", detail: error.message };
        trouble = error instanceof Error ? error.message : String(error);
        return { rule, result: "unknown", detail: trouble };
      },
    );
    found.push(step);
    onStep(step);
  }
  await bucket.delete(key).catch(() => undefined);
  return found;
}

function create(content: string, expected: "applied" | "rejected"): Check {
  return async (state, signal) =>
    judge(
      state,
      content,
      await state.bucket.createIfAbsent(state.key, content, { signal }),
      expected,
      signal,
    );
}

function replace(content: string, former: string, expected: "applied" | "rejected"): Check {
  return async (state, signal) => {
    const etag = state.etags.get(former) ?? "";
    const write = await state.bucket.replaceIf(state.key, content, etag, { signal });
    return judge(state, content, write, expected, signal);
  };
}

async function judge(
  state: ProbeState,
  content: string,
  write: ConditionalWrite,
  expected: "applied" | "rejected",
  signal: AbortSignal,
): Promise<string | undefined> {
  const outcome = write.kind === "ambiguous" ? await write.settle({ signal }) : write;
  if (outcome.kind === "applied") state.etags.set(content, outcome.etag);
  if (outcome.kind === expected) return undefined;
  return expected === "rejected" ? "it was written although the condition did not hold" : "it was refused";
}

function read(content: string): Check {
  return async ({ bucket, key, etags }, signal) => {
    const object = await bucket.get(key, { signal });
    if (object === undefined) return "nothing was there";
    const text = Buffer.from(object.body).toString("utf8");
    if (text !== content) return `it read ${JSON.stringify(text.slice(0, 80))}`;
    const etag = etags.get(content);
    return object.etag === etag
      ? undefined
      : `the write answered the ETag ${etag}, and the read ${object.etag}`;
  };
}

/** Held against what a whole read shows, so that a rule that was broken before does not look like another one here. */
async function readRange({ bucket, key }: ProbeState, signal: AbortSignal): Promise<string | undefined> {
  const whole = await bucket.get(key, { signal });
  const part = await bucket.get(key, { signal, range: { start: 4, end: 10 } });
  if (whole === undefined || part === undefined) return "nothing was there";
  if (Buffer.compare(part.body, whole.body.subarray(4, 10)) !== 0)
    return `bytes 4 to 9 read as ${JSON.stringify(Buffer.from(part.body).toString("utf8").slice(0, 80))}`;
  return part.sizeBytes === whole.sizeBytes ? undefined : `it gave the whole's size as ${part.sizeBytes}`;
}

async function list({ bucket, key }: ProbeState, signal: AbortSignal): Promise<string | undefined> {
  const whole = await bucket.get(key, { signal });
  for await (const object of bucket.list(key, { signal })) {
    if (object.key !== key) continue;
    if (object.sizeBytes !== whole?.sizeBytes) return `it gave the size as ${object.sizeBytes}`;
    const bare = (etag: string) => etag.replaceAll('"', "");
    return bare(object.etag) === bare(whole.etag) ? undefined : `it gave the ETag as ${object.etag}`;
  }
  return "it was not listed";
}

async function remove({ bucket, key }: ProbeState, signal: AbortSignal): Promise<string | undefined> {
  await bucket.delete(key, { signal });
  return (await bucket.get(key, { signal })) === undefined ? undefined : "it was still there";
}
