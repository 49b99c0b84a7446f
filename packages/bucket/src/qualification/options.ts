/** Options of a qualification, checked once. */
import { BucketOptionError } from "../errors.ts";

/** What a qualification is doing. */
export interface QualificationProgress {
  phase: "probe" | "create" | "replace";
  /** How many steps or rounds of the phase are done. */
  doneCount: number;
  /** How many it has. */
  totalCount: number;
  /** What the last one showed that a bucket must not do, or what stood in its way. */
  problem?: string | undefined;
}

/** Options of {@link qualifyBucket}. */
export interface QualificationOptions {
  /** How many write at once; 2 to 64. @default 8 */
  writerCount?: number | undefined;
  /** Rounds of each kind of race; 1 to 10,000. @default 32 */
  roundCount?: number | undefined;
  /** What the keys of all probe objects begin with, below the bucket's own prefix. @default "cellkit-qualification" */
  prefix?: string | undefined;
  /** The whole of it; then the verdict is `unknown`, or what was found until then. @default 600_000 */
  timeLimitMs?: number | undefined;
  /** Ends it, with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Hears of each step and round. */
  onProgress?: ((progress: QualificationProgress) => void) | undefined;
}

/** Options with their defaults. */
export interface ResolvedQualificationOptions {
  writerCount: number;
  roundCount: number;
  prefix: string;
  timeLimitMs: number;
  signal: AbortSignal | undefined;
  onProgress: (progress: QualificationProgress) => void;
}

/** @throws BucketOptionError (CELLKIT_BUCKET_OPTION) */
export function resolveQualificationOptions(options: QualificationOptions): ResolvedQualificationOptions {
  const whole = (name: string, value: number, min: number, max: number): number => {
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new BucketOptionError(`${name} is ${value}; it takes a whole number from ${min} to ${max}`);
  };
  const { prefix = "cellkit-qualification" } = options;
  if (!/^[\w.-]{1,64}(\/[\w.-]{1,64}){0,7}$/.test(prefix) || /(^|\/)\.{1,2}(\/|$)/.test(prefix))
    throw new BucketOptionError(
      `prefix is ${JSON.stringify(prefix)}; it takes up to eight names of letters, digits and . _ - between slashes`,
    );
  return {
    writerCount: whole("writerCount", options.writerCount ?? 8, 2, 64),
    roundCount: whole("roundCount", options.roundCount ?? 32, 1, 10_000),
    prefix,
    timeLimitMs: whole("timeLimitMs", options.timeLimitMs ?? 600_000, 1, 86_400_000),
    signal: options.signal,
    onProgress: options.onProgress ?? (() => undefined),
  };
}
