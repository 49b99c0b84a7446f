export { type BucketLedgerOptions, openBucketLedger } from "./bucket/open-bucket-ledger.ts";
export { type Digest, loadDigest } from "./digest.ts";
export {
  CorruptRecordError,
  LedgerAgentError,
  LedgerBusyError,
  LedgerClosedError,
  LedgerError,
  LedgerExportError,
  LedgerMissingError,
  LedgerOptionError,
  LedgerUnavailableError,
  LedgerUnsupportedError,
  NotRetirableError,
  OwnerChoiceError,
} from "./errors.ts";
export type {
  Claim,
  Ledger,
  LedgerCallOptions,
  LedgerEntry,
  LedgerOptions,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "./ledger.ts";
export { LedgerMemory, openMemoryLedger } from "./memory-ledger.ts";
export type { PosixLedgerEvent, PosixLedgerListener } from "./posix/ledger-event.ts";
export { openPosixLedger, type PosixLedgerOptions } from "./posix/open-posix-ledger.ts";
