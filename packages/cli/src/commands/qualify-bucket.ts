// `cellkit qualify bucket URL`: whether a bucket keeps its conditions, also when many write at once.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { bucketOptions } from "../bucket-options.ts";

/** The command's options. */
export const qualifyBucketOptions = z.strictObject({
  ...bucketOptions,
  bucket: bucketOptions.bucket.meta({
    description:
      "The bucket, and the prefix below which it is tried; file:///DIRECTORY is a bucket in a directory here, not a ledger's directory; what makes the directory a bucket (cellkit-bucket.json, empty folders, files of locks) is made there and stays. Credentials of s3:// come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the AWS SDK's other sources.",
    env: "CELLD_BUCKET",
    placeholder: "URL",
    positional: true,
    emptyIsUnset: true,
  }),
  writers: z.number().int().min(2).max(64).default(8).meta({
    description: "How many write at once, each over connections of its own.",
    placeholder: "COUNT",
  }),
  rounds: z.number().int().min(1).max(10_000).default(32).meta({
    description: "How many races there are of each kind: for the creation of a key, for its replacement.",
    placeholder: "COUNT",
  }),
  prefix: z
    .string()
    .regex(
      /^[A-Za-z0-9_.-]{1,64}(\/[A-Za-z0-9_.-]{1,64}){0,7}$/,
      "must be names of letters, digits and . _ - between slashes",
    )
    .refine(
      (text) => !text.split("/").some((name) => name === "." || name === ".."),
      "must not have . or .. as a name",
    )
    .default("cellkit-qualification")
    .meta({
      description:
        "What the keys of the objects begin with that are written, and removed again, below the bucket's own prefix.",
      placeholder: "PREFIX",
    }),
  timeLimitMs: z.number().int().min(1_000).max(86_400_000).default(600_000).meta({
    description: "How long all of it may take; what was not tried by then is unknown.",
  }),
  json: z.boolean().default(false).meta({
    description:
      "Print what was found as one JSON object: url, verdict (qualified, violated, unknown), problems, writerCount, probe, races, durationMs.",
  }),
});

/** The command. */
export const qualifyBucketCommand = defineCommand<typeof qualifyBucketOptions, CommandContext>({
  description:
    "Finds out whether a bucket may be trusted with claims, leases and pointers: first one writer, step by step; then many that race to create a key, and to replace it. Each race must have one winner, whose content stands and is read by everybody at once. Run it for each store, and again whenever the store was upgraded.",
  schema: qualifyBucketOptions,
  exitCodes: {
    0: "qualified: every rule held, and every race had one winner",
    1: "not qualified: a rule was broken; standard output says which",
    2: "could not tell: the bucket does not answer or refuses, the time was up; or bad flags or environment",
    130: "ended by a signal",
  },
  examples: [
    {
      command: "cellkit qualify bucket s3://cells/fleet",
      description: "The bucket of a fleet, beside its objects",
    },
    {
      command: "cellkit qualify bucket s3://cells --endpoint https://store.example --writers 16 --rounds 200",
      description: "Another store than AWS, for longer",
    },
    {
      command: "cellkit qualify bucket s3://cells --json | jq -r '.problems[]'",
      description: "What stands against it",
    },
  ],
  async run(config, { note, print, signal }) {
    const { BucketError, openBucket, qualifyBucket } = await import("@cellkit/bucket");
    const { bucket: url, endpoint, region, writers, rounds, prefix, timeLimitMs } = config;
    const open = () => openBucket(url, { endpoint, region });
    const progress = progressLines(note, process.stderr.isTTY === true);
    const found = await qualifyBucket(open, {
      writerCount: writers,
      roundCount: rounds,
      prefix,
      timeLimitMs,
      signal,
      onProgress: progress,
    }).catch((error: unknown) => {
      if (!(error instanceof BucketError)) throw error;
      note(error.message);
      return undefined;
    });
    if (found === undefined) return 2;
    if (config.json) print(JSON.stringify(found));
    else for (const line of [verdictLine(found), ...found.problems]) print(line);
    return { qualified: 0, violated: 1, unknown: 2 }[found.verdict];
  },
});

type Found = Awaited<ReturnType<typeof import("@cellkit/bucket").qualifyBucket>>;

function verdictLine({ url, verdict, writerCount, races, durationMs }: Found): string {
  const count = races.create.roundCount + races.replace.roundCount;
  const words = { qualified: "qualified", violated: "NOT qualified", unknown: "could not tell" };
  return `${words[verdict]}: ${url}, ${count} races of ${writerCount} writers in ${(durationMs / 1000).toFixed(1)} s`;
}

/** On a terminal about every tenth step or round, and each that went wrong; the result tells these everywhere. */
function progressLines(
  note: (line: string) => void,
  isTerminal: boolean,
): (progress: {
  phase: string;
  doneCount: number;
  totalCount: number;
  problem?: string | undefined;
}) => void {
  const names: Record<string, string> = {
    probe: "one writer",
    create: "races to create",
    replace: "races to replace",
  };
  if (!isTerminal) return () => undefined;
  return ({ phase, doneCount, totalCount, problem }) => {
    const at = `${names[phase] ?? phase}: ${doneCount} of ${totalCount}`;
    if (problem !== undefined) note(`${at}: ${problem}`);
    else if (isTerminal && (doneCount === totalCount || doneCount % Math.ceil(totalCount / 10) === 0))
      note(at);
  };
}
