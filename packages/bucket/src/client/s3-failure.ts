/** What a failed S3 call means. */
import {
  BucketAccessDeniedError,
  BucketAnswerError,
  type BucketError,
  BucketFullError,
  BucketUnreachableError,
  NoBucketError,
} from "../errors.ts";

/** A failed call, sorted by what is known of its effect. */
export type S3Failure =
  /** 412, or 404 of the key. */
  | { kind: "condition" }
  /** 304. */
  | { kind: "not-modified" }
  /** 416. */
  | { kind: "range" }
  /** 409 ConditionalRequestConflict: not made, try again. */
  | { kind: "conflict"; error: BucketError }
  /** Certainly without effect. */
  | { kind: "failed"; error: BucketError }
  /** The request may have been sent, and no answer says what came of it. */
  | { kind: "unknown"; error: BucketError };

const CONNECT_CALLS = new Set(["connect", "getaddrinfo"]);
const DENIED_CODES = new Set(["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestExpired"]);

/** Who forgot to give the endpoint of another store asked AWS without knowing it. */
const UNTOLD = "no endpoint was given, so the AWS SDK chose it";

/** Sorts whatever the AWS SDK threw. @param endpoint that was given for the bucket, for the message */
export function s3Failure(bucket: string, error: unknown, endpoint?: string): S3Failure {
  const status = statusOf(error);
  const name = error instanceof Error ? error.name : "";
  const failed = (kind: BucketError): S3Failure => ({ kind: "failed", error: kind });
  const options = { cause: error, endpoint };
  const why = (reason: string) => withPlace(reason, endpoint);
  if (status === 304) return { kind: "not-modified" };
  if (status === 416) return { kind: "range" };
  if (status === 412) return { kind: "condition" };
  if (name === "NoSuchKey") return { kind: "condition" };
  if (name === "NoSuchBucket") {
    return failed(new NoBucketError(endpoint === undefined ? `${bucket} (${UNTOLD})` : bucket, options));
  }
  if (status === 401 || status === 403 || DENIED_CODES.has(name)) {
    return failed(new BucketAccessDeniedError(bucket, why(name || `status ${status}`), options));
  }
  if (status === 507) return failed(new BucketFullError(bucket, options));
  if (status === 409 && name === "ConditionalRequestConflict") {
    return {
      kind: "conflict",
      error: new BucketUnreachableError(bucket, "409 ConditionalRequestConflict", options),
    };
  }
  // It does not know what was asked for: nothing was done, and asking again is senseless.
  if (status === 501) return failed(new BucketAnswerError(bucket, `501 ${name}`, options));
  if (status === undefined) return withoutAnswer(bucket, error, name, endpoint);
  if (status >= 500 || status === 408 || status === 429 || name === "RequestTimeout" || status < 300) {
    return { kind: "unknown", error: new BucketUnreachableError(bucket, why(`${status} ${name}`), options) };
  }
  return failed(new BucketAnswerError(bucket, `${status} ${name}`, options));
}

function withoutAnswer(
  bucket: string,
  error: unknown,
  name: string,
  endpoint: string | undefined,
): S3Failure {
  if (name === "CredentialsProviderError" || /credential/i.test(name)) {
    return {
      kind: "failed",
      error: new BucketAccessDeniedError(
        bucket,
        "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        {
          cause: error,
        },
      ),
    };
  }
  const parts = error instanceof AggregateError ? error.errors : [error];
  const unsent = parts.length > 0 && parts.every(isUnsent);
  return {
    kind: unsent ? "failed" : "unknown",
    error: new BucketUnreachableError(bucket, withPlace(reasonOf(parts[0] ?? error), endpoint), {
      cause: error,
      endpoint,
    }),
  };
}

function withPlace(reason: string, endpoint: string | undefined): string {
  return endpoint === undefined ? `${reason}; ${UNTOLD}` : reason;
}

/** A name that did not resolve, a connection that was not made: no byte of the request left. */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && CONNECT_CALLS.has(String(error.syscall));
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : `${error.name}: ${error.message}`;
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  const metadata = error.$metadata;
  if (typeof metadata !== "object" || metadata === null || !("httpStatusCode" in metadata)) return undefined;
  return typeof metadata.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}
