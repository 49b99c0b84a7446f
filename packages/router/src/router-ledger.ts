// The router's ledger, wherever its address says.
import type { BucketOptions } from "@cellkit/bucket";
import {
  LedgerMissingError,
  LedgerOptionError,
  type LedgerReader,
  openLedger,
  openLedgerReader,
  openPosixLedger,
  type PosixLedgerListener,
  parseLedgerUrl,
  type StoredLedger,
} from "@cellkit/ledger";
import type { RouterConfig } from "./config.ts";
import { LedgerAbsentError, LedgerPlaceError } from "./errors.ts";

/** What of the configuration concerns the ledger. */
export type LedgerConfig = Pick<
  RouterConfig,
  | "ledger"
  | "ownershipDir"
  | "requireExistingLedger"
  | "ledgerCapacity"
  | "ledgerLockMs"
  | "trustDirectoryTimes"
  | "endpoint"
  | "region"
>;

/** Where the ledger lies: `--ledger`, or `--ownership-dir`, which is a directory whatever it looks like. */
export function ledgerAddress({ ledger, ownershipDir }: LedgerConfig): string {
  return (
    ledger ?? (/^[a-z][a-z0-9+.-]+:/i.test(ownershipDir ?? "") ? `./${ownershipDir}` : (ownershipDir ?? ""))
  );
}

/** How a bucket is opened. */
export function bucketOptions({ endpoint, region }: LedgerConfig): BucketOptions {
  return { region, ...(endpoint === undefined ? {} : { endpoint }) };
}

/**
 * Opens the ledger. Executions are never retired.
 * @param onEvent hears of a directory's ledger; the other stores tell nothing
 * @throws LedgerAbsentError (`CELLKIT_ROUTER_LEDGER_ABSENT`), LedgerPlaceError (`CELLKIT_ROUTER_LEDGER_PLACE`); otherwise as `openLedger`
 */
export function openRouterLedger(config: LedgerConfig, onEvent: PosixLedgerListener): Promise<StoredLedger> {
  return open(config, onEvent).catch(inWordsOfFlags);
}

/** What a command's user can do about it is a flag; the library's advice is one of its options. */
function inWordsOfFlags(error: unknown): never {
  if (error instanceof LedgerMissingError)
    throw new LedgerAbsentError(error.problem, { cause: error, hasRecords: error.hasRecords });
  if (error instanceof LedgerOptionError) throw new LedgerPlaceError(error.message, { cause: error });
  throw error;
}

async function open(config: LedgerConfig, onEvent: PosixLedgerListener): Promise<StoredLedger> {
  const address = ledgerAddress(config);
  const common = { requireExisting: config.requireExistingLedger, capacity: config.ledgerCapacity };
  const location = parseLedgerUrl(address);
  if (location.kind !== "posix") return openLedger(address, { ...common, bucket: bucketOptions(config) });
  return openPosixLedger({
    ...common,
    directory: location.directory,
    lockTimeoutMs: config.ledgerLockMs,
    trustDirectoryTimes: config.trustDirectoryTimes,
    onEvent,
  });
}

/** Opens it to look at it: nothing is created or written, and an original's ledger needs no mark. Throws as {@link openRouterLedger}. */
export async function openRouterLedgerReader(config: LedgerConfig): Promise<LedgerReader> {
  return openLedgerReader(ledgerAddress(config), { bucket: bucketOptions(config) }).catch(inWordsOfFlags);
}
