import { BucketAccessDeniedError, BucketDiskError, BucketError, BucketFullError } from "../errors.ts";

/** The errno name of a failed system call (`ENOENT`), or undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** One of this package's errors for a failure of the file system under `directory`; the cause is kept. */
export function diskFailure(directory: string, error: unknown): BucketError {
  if (error instanceof BucketError) return error;
  const errno = errnoOf(error);
  if (errno === "ENOSPC" || errno === "EDQUOT") return new BucketFullError(directory, { cause: error });
  if (errno === "EACCES" || errno === "EPERM" || errno === "EROFS") {
    return new BucketAccessDeniedError(directory, errno, { cause: error });
  }
  return new BucketDiskError(directory, errno ?? String(error), { cause: error });
}
