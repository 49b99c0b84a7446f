export type {
  Ambiguous,
  Applied,
  Bucket,
  CallOptions,
  ConditionalWrite,
  GetOptions,
  ListedObject,
  ListedPrefix,
  ListOptions,
  NotModified,
  PutOptions,
  ReadAnswer,
  Rejected,
  StoredObject,
} from "./bucket.ts";
export { s3Credentials } from "./client/s3-credentials.ts";
export type { RaceJudgement } from "./core/race-judgement.ts";
export {
  BucketAccessDeniedError,
  BucketAnswerError,
  BucketClosedError,
  BucketDiskError,
  BucketError,
  BucketFormatError,
  BucketFullError,
  BucketKeyError,
  BucketOptionError,
  BucketUnreachableError,
  BucketUrlError,
  CorruptObjectError,
  NoBucketError,
  ObjectRangeError,
  ObjectTooLargeError,
  UndecidedWriteError,
  UnsettledWriteError,
} from "./errors.ts";
export { openBucket } from "./open-bucket.ts";
export type { BucketOptions, Credentials } from "./options.ts";
export type { QualificationOptions, QualificationProgress } from "./qualification/options.ts";
export type { ProbeStep } from "./qualification/probe.ts";
export { type BucketQualification, qualifyBucket, type RaceSummary } from "./qualification/qualify-bucket.ts";
export type { RaceKind, RaceRound } from "./qualification/race.ts";
