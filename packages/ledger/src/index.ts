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
  LedgerReader,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "./ledger.ts";
export { LedgerMemory, openMemoryLedger } from "./memory-ledger.ts";
export {
  type LedgerLocation,
  type OpenLedgerOptions,
  openLedger,
  openLedgerReader,
  parseLedgerUrl,
} from "./open-ledger.ts";
export type { PosixLedgerEvent, PosixLedgerListener } from "./posix/ledger-event.ts";
export { openPosixLedger, type PosixLedgerOptions } from "./posix/open-posix-ledger.ts";
export { type AgentOptions, serveAgent } from "./qualification/agent.ts";
export {
  type AgentCommand,
  type AgentLink,
  type AgentPlace,
  type AgentSignal,
  type LinkEvents,
  localPlace,
} from "./qualification/agent-connection.ts";
export {
  type AgentListener,
  type AgentListenerOptions,
  listenForAgents,
  peerPlace,
} from "./qualification/agent-listener.ts";
export type { Flock } from "./qualification/agent-lock.ts";
export type { CheckResult, LedgerCheck, LedgerQualification, Verdict } from "./qualification/check.ts";
export { type DirectoryPlace, describeDirectory } from "./qualification/describe-directory.ts";
export { type QualifyOptions, qualifyLedger } from "./qualification/qualify-ledger.ts";
export {
  type Finding,
  isClean,
  type LedgerFindings,
  type VerifyOptions,
  verifyLedger,
} from "./qualification/verify-ledger.ts";
export type { ExportHead } from "./transfer/export-file.ts";
export { exportToFile } from "./transfer/export-to-file.ts";
export {
  type ExportSummary,
  exportLedger,
  type ImportOptions,
  type ImportSummary,
  type ImportTarget,
  importLedger,
} from "./transfer/transfer.ts";
