/** Options of a bucket and the parsing of its URL. */
import { fileURLToPath } from "node:url";
import { BucketOptionError, BucketUrlError } from "./errors.ts";

/** A pair of keys for an S3 store. */
export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

/** Options of {@link openBucket}. */
export interface BucketOptions {
  /** S3 only: the store's URL, `http://…` or `https://…`; with it, keys go into the path (path style). */
  endpoint?: string | undefined;
  /** S3 only. @default AWS_REGION, AWS_DEFAULT_REGION, else "us-east-1" */
  region?: string | undefined;
  /** S3 only. @default the AWS SDK's chain (environment, profile, container, instance) */
  credentials?: Credentials | undefined;
  /** Of one request, from its start to the end of its answer. @default 10_000 */
  timeoutMs?: number | undefined;
  /** How long `settle()` goes on while the store cannot be read. @default 60_000 */
  settleTimeoutMs?: number | undefined;
  /** The longest body that `get` reads. @default 67_108_864 (64 MiB) */
  maxBytes?: number | undefined;
  /** S3 only: how often a read is tried in all; a write is sent once. @default 3 */
  readAttemptCount?: number | undefined;
}

/** Options with their defaults. */
export interface ResolvedOptions {
  endpoint: string | undefined;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | undefined;
  timeoutMs: number;
  settleTimeoutMs: number;
  maxBytes: number;
  readAttemptCount: number;
}

/** Where a bucket is. */
export type BucketLocation =
  | { kind: "s3"; bucket: string; prefix: string }
  | { kind: "file"; directory: string };

/** Without what stands before an `@`, which may be a password. */
function printable(endpoint: string): string {
  return JSON.stringify(endpoint.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, "$1…@"));
}

/** Checks options once, at the door. @throws BucketOptionError (CELLKIT_BUCKET_OPTION) */
export function resolveOptions(options: BucketOptions, env: NodeJS.ProcessEnv): ResolvedOptions {
  const number = (name: string, value: number | undefined, fallback: number, max: number): number => {
    const resolved = value ?? fallback;
    if (Number.isInteger(resolved) && resolved >= 1 && resolved <= max) return resolved;
    throw new BucketOptionError(`${name} is ${resolved}; it takes a whole number from 1 to ${max}`);
  };
  if (options.endpoint !== undefined && !/^https?:\/\//.test(options.endpoint)) {
    throw new BucketOptionError(
      `endpoint is ${printable(options.endpoint)}; it takes http://host:port or https://…`,
    );
  }
  if (options.endpoint !== undefined && !URL.canParse(options.endpoint)) {
    throw new BucketOptionError(`endpoint ${printable(options.endpoint)} is not a URL`);
  }
  return {
    endpoint: options.endpoint,
    region: options.region ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1",
    credentials: options.credentials && {
      accessKeyId: options.credentials.accessKeyId,
      secretAccessKey: options.credentials.secretAccessKey,
      ...(options.credentials.sessionToken === undefined
        ? {}
        : { sessionToken: options.credentials.sessionToken }),
    },
    timeoutMs: number("timeoutMs", options.timeoutMs, 10_000, 3_600_000),
    settleTimeoutMs: number("settleTimeoutMs", options.settleTimeoutMs, 60_000, 3_600_000),
    maxBytes: number("maxBytes", options.maxBytes, 64 * 1024 * 1024, 2 ** 31),
    readAttemptCount: number("readAttemptCount", options.readAttemptCount, 3, 100),
  };
}

/** Reads `s3://bucket/prefix` or `file:///directory`. @throws BucketUrlError (CELLKIT_BUCKET_URL) */
export function parseBucketUrl(url: string): BucketLocation {
  if (url.startsWith("s3://")) {
    const [, bucket = "", prefix = ""] = /^s3:\/\/([^/]*)\/?(.*)$/s.exec(url) ?? [];
    if (!/^[a-z0-9][a-z0-9.-]{0,62}$/.test(bucket)) {
      throw new BucketUrlError(url, "a bucket name has 1 to 63 lower-case letters, digits, dots and hyphens");
    }
    const trimmed = prefix.replace(/\/+$/, "");
    if (
      trimmed.includes("?") ||
      trimmed.includes("#") ||
      (trimmed.split("/").some((s) => s === "" || s === "." || s === "..") && trimmed !== "")
    ) {
      throw new BucketUrlError(url, "the prefix has an empty segment, a dot segment, a query or a fragment");
    }
    return { kind: "s3", bucket, prefix: trimmed === "" ? "" : `${trimmed}/` };
  }
  if (url.startsWith("file:")) {
    try {
      if (!url.startsWith("file:///"))
        throw new BucketUrlError(url, "a file URL has three slashes and an absolute path");
      return { kind: "file", directory: fileURLToPath(url).replace(/(?<=.)\/+$/, "") };
    } catch (error) {
      if (error instanceof BucketUrlError) throw error;
      // Without the cause, which holds the URL.
      throw new BucketUrlError(url, "not a path on this machine");
    }
  }
  throw new BucketUrlError(url, "this version knows s3:// and file://");
}
