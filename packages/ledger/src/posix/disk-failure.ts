/** Failures of system calls, as this package's errors. */
import { LedgerError, LedgerUnavailableError } from "../errors.ts";

/** The errno name of a failed system call (`ENOENT`), or undefined for any other error. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const NOT_ALLOWED = `the user ${process.getuid?.() ?? "of this process"} may not do it; whoever opens a ledger must be the user whom its files belong to`;

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "its disk is full",
  EDQUOT: "its quota is used up",
  EACCES: NOT_ALLOWED,
  EPERM: NOT_ALLOWED,
  EROFS: "its file system is read-only",
  ENOENT: "something that belongs to it was removed",
  ENOTDIR: "something that belongs to it is no directory",
  ESTALE: "its file server has forgotten it",
  EMFILE: "this process has too many open files",
  ENFILE: "this machine has too many open files",
};

/**
 * Says what failed. An error of this package stays as it is.
 * @param doing what was tried, as words that go behind "to", for example `write a record`
 * @param recorded whether the claim may stand on the disk
 */
export function diskFailure(
  ledger: string,
  doing: string,
  error: unknown,
  recorded: "no" | "maybe",
): LedgerError {
  if (error instanceof LedgerError) return error;
  const errno = errnoOf(error) ?? String(error);
  const reason = REASONS[errno];
  const problem = `it could not ${doing} (${errno}${reason === undefined ? "" : `: ${reason}`})`;
  return new LedgerUnavailableError(ledger, problem, recorded, { cause: error });
}

/** Closes or removes in the wake of a failure: that failure is what the caller must learn, not this one's. */
export async function quietly(cleaning: Promise<unknown>): Promise<void> {
  await cleaning.catch(() => undefined);
}
