/** What the suite must be told of a store, and what it answers: cases for any test framework. */
import type { LedgerOptions, StoredLedger } from "../ledger.ts";

/**
 * Opens the ledger at a place, each time another handle; those of one place and one name must be the same ledger.
 * @param place begins with a letter and has at most 20 of `a-z 0-9 -`: fit for a folder, a prefix or, with `_` for `-`, a table. Every
 *   case of every run has another one. Nothing lies there at first, and the suite removes nothing: whoever opens it cleans up
 */
export type OpenLedger = (place: string, options?: LedgerOptions) => Promise<StoredLedger>;

/**
 * What a store may lack. `capacity`: it has no limit that it could keep. `retiring`: nothing is ever retired or swept; its `retire` and
 * `sweep` refuse with CELLKIT_LEDGER_NOT_RETIRABLE. `requireExisting`: it cannot tell an empty ledger from none.
 */
export type ConformanceFeature = "capacity" | "retiring" | "requireExisting";

/** What the suite must know of a store. */
export interface ConformanceFeatures {
  /**
   * Puts these bytes where the record of a key (64 lowercase hex digits) lies, in the ledger of the default name, as a fault of the store
   * would leave them; the place was opened before. Without it the cases of corrupt records are skipped.
   */
  plant?: ((place: string, key: string, bytes: Uint8Array) => Promise<void>) | undefined;
  /** What the store cannot do, and why: `{ capacity: "a bucket has no counter" }`. The cases that need it are skipped with that reason. */
  lacks?: Partial<Record<ConformanceFeature, string>> | undefined;
  /** How long one case may take before it fails, in milliseconds; 1 or more. Give the framework more than that. @default 30_000 */
  timeoutMs?: number | undefined;
}

/**
 * One rule, as a test of any framework: `it.skipIf(skip !== undefined)(name, run)` in vitest, or
 * `test(name, { skip: skip ?? false }, run)` of node:test.
 */
export interface ConformanceCase {
  /** A sentence that states the rule. */
  readonly name: string;
  /** Why this store cannot be held against the rule; a case without it is to be run. */
  readonly skip?: string;
  /**
   * @throws ConformanceError (CELLKIT_LEDGER_CONFORMANCE) that says what was expected, which call did not end in time, or that this case is
   *   to be skipped; what the store rejects with where an answer is expected goes through as it is
   */
  run(): Promise<void>;
}
