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
