/** What a ledger in a directory tells of itself, for metrics and logs. */

/**
 * - `claim`: a claim was answered, or failed with a code. `durationMs` includes the choice of the owner.
 * - `lock`: the ledger's lock was given back, or (`taken: false`) not had in time. `holdMs` is 0 then.
 * - `commit`: a group of claims became durable: how many records, and how long the fsync of the directory took.
 * - `scan`: the records were counted, under the lock or beside it. `capacity` less `count` is what is left.
 * - `corrupt`: a record cannot be read; `key` is the BLAKE3-256 of its id.
 */
export type PosixLedgerEvent =
  | {
      kind: "claim";
      result: "new" | "existing" | "conflict" | "full" | "failed";
      code?: string;
      durationMs: number;
    }
  | { kind: "lock"; taken: boolean; lockWaitMs: number; holdMs: number }
  | { kind: "commit"; recordCount: number; syncMs: number }
  | { kind: "scan"; underLock: boolean; scanMs: number; count: number; capacity: number }
  | { kind: "corrupt"; key: string; problem: string };

/** Takes events; called at once, so it must be quick. What it throws becomes an uncaught exception and harms no claim. */
export type PosixLedgerListener = (event: PosixLedgerEvent) => void;

/** A listener that cannot make the ledger fail. */
export function guardListener(listener: PosixLedgerListener | undefined): PosixLedgerListener {
  if (listener === undefined) return () => undefined;
  return (event) => {
    try {
      listener(event);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}
