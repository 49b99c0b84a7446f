/** Every error of this package: match on `code`, since two copies of a library break `instanceof`. */

/** The base of all errors that @cellkit/bucket throws. */
export abstract class BucketError extends Error {
  /** Stable and unique per class: `CELLKIT_BUCKET_…`. */
  abstract readonly code: string;
}

/** The bucket URL cannot be used. Write `s3://bucket/prefix` or `file:///directory`. */
export class BucketUrlError extends BucketError {
  override readonly name = "BucketUrlError";
  readonly code = "CELLKIT_BUCKET_URL";
  constructor(url: string, reason: string, options?: ErrorOptions) {
    super(`bucket URL ${shown(url)}: ${reason}; write s3://bucket/prefix or file:///directory`, options);
  }
}

/** A URL for a message. What has a user, a password or parameters in it is not shown, but for its scheme. */
function shown(url: string): string {
  return /[@?#]/.test(url) ? `${/^[a-z0-9+.-]*:/i.exec(url)?.[0] ?? ""}…` : JSON.stringify(url);
}

/** An option has a value outside its range. The message names the option and the range. */
export class BucketOptionError extends BucketError {
  override readonly name = "BucketOptionError";
  readonly code = "CELLKIT_BUCKET_OPTION";
  constructor(problem: string, options?: ErrorOptions) {
    super(`bucket options: ${problem}`, options);
  }
}

/** The key cannot name an object: empty, over 1,024 bytes of UTF-8, malformed, or climbing out of the bucket. */
export class BucketKeyError extends BucketError {
  override readonly name = "BucketKeyError";
  readonly code = "CELLKIT_BUCKET_KEY";
  constructor(key: string, reason: string, options?: ErrorOptions) {
    super(`object key ${JSON.stringify(shorten(key))} ${reason}`, options);
  }
}

/** The store gave no answer, or none of use: refused, not resolved, timed out, reset, or answering 5xx. A later try may succeed. */
export class BucketUnreachableError extends BucketError {
  override readonly name = "BucketUnreachableError";
  readonly code = "CELLKIT_BUCKET_UNREACHABLE";
  /** The endpoint that was asked, as `http://host:port`; undefined where the SDK chose it. */
  readonly endpoint: string | undefined;
  constructor(bucket: string, reason: string, options?: ErrorOptions & { endpoint?: string | undefined }) {
    // Only the origin: what else may stand in a URL can be a secret.
    const endpoint = URL.parse(options?.endpoint ?? "")?.origin;
    const at = endpoint === undefined ? "" : ` at the endpoint ${endpoint}`;
    // A reason that begins with a status is an answer, if no good one.
    const what = /^[45][0-9]{2} /.test(reason) ? "answered with a failure" : "gave no answer";
    super(`bucket ${bucket} ${what}${at} (${reason}); check the endpoint and that the store runs`, options);
    this.endpoint = endpoint;
  }
}

/** The store refused the credentials, or the file system the directory. A retry cannot help. */
export class BucketAccessDeniedError extends BucketError {
  override readonly name = "BucketAccessDeniedError";
  readonly code = "CELLKIT_BUCKET_ACCESS_DENIED";
  constructor(bucket: string, reason: string, options?: ErrorOptions) {
    super(`bucket ${bucket} denied access (${reason}); check the credentials and their permissions`, options);
  }
}

/** The store has no bucket of that name. Create it, or correct the URL. */
export class NoBucketError extends BucketError {
  override readonly name = "NoBucketError";
  readonly code = "CELLKIT_BUCKET_NO_BUCKET";
  constructor(bucket: string, options?: ErrorOptions) {
    super(`bucket ${bucket} does not exist; create it or correct the URL`, options);
  }
}

/** The disk under the bucket is full. Nothing that was acknowledged is lost; the write was not made. */
export class BucketFullError extends BucketError {
  override readonly name = "BucketFullError";
  readonly code = "CELLKIT_BUCKET_FULL";
  constructor(bucket: string, options?: ErrorOptions) {
    super(
      `bucket ${bucket}: no space left for the write, which was not made; free or add disk space`,
      options,
    );
  }
}

/** An object is larger than the reader or the store accepts. */
export class ObjectTooLargeError extends BucketError {
  override readonly name = "ObjectTooLargeError";
  readonly code = "CELLKIT_BUCKET_TOO_LARGE";
  constructor(key: string, limitBytes: number, options?: ErrorOptions) {
    super(
      `object ${JSON.stringify(shorten(key))} has more than ${limitBytes} bytes, the limit here; read a range or raise maxBytes`,
      options,
    );
  }
}

/** A ranged read began at or after the end of the object. */
export class ObjectRangeError extends BucketError {
  override readonly name = "ObjectRangeError";
  readonly code = "CELLKIT_BUCKET_RANGE";
  constructor(key: string, range: string, options?: ErrorOptions) {
    super(
      `range ${range} holds no byte of object ${JSON.stringify(shorten(key))}; read from within its size`,
      options,
    );
  }
}

/** `settle()` ran out of time while the store could not be read: the outcome of the write is still unknown. */
export class UnsettledWriteError extends BucketError {
  override readonly name = "UnsettledWriteError";
  readonly code = "CELLKIT_BUCKET_UNSETTLED";
  constructor(key: string, afterMs: number, options?: ErrorOptions) {
    super(
      `the write of ${JSON.stringify(shorten(key))} is still undecided after ${afterMs} ms of reading back; call settle() again once the store answers`,
      options,
    );
  }
}

/** A write in a directory is visible, but the file system could not make it durable: it may not survive a crash. */
export class UndecidedWriteError extends BucketError {
  override readonly name = "UndecidedWriteError";
  readonly code = "CELLKIT_BUCKET_UNDECIDED";
  constructor(bucket: string, options?: ErrorOptions) {
    super(
      `bucket ${bucket}: a write is visible but perhaps not durable; check the disk, then write again`,
      options,
    );
  }
}

/** The store answered something that no rule here expects. The message carries its status and code. */
export class BucketAnswerError extends BucketError {
  override readonly name = "BucketAnswerError";
  readonly code = "CELLKIT_BUCKET_ANSWER";
  constructor(bucket: string, answer: string, options?: ErrorOptions) {
    super(
      `bucket ${bucket} answered ${answer}; the store may lack what this call needs (docs: qualified stores)`,
      options,
    );
  }
}

/** The directory holds something that is not a cellkit bucket, or a format that this version does not know. */
export class BucketFormatError extends BucketError {
  override readonly name = "BucketFormatError";
  readonly code = "CELLKIT_BUCKET_FORMAT";
  constructor(directory: string, reason: string, options?: ErrorOptions) {
    super(`directory ${directory} ${reason}; name an empty directory or a bucket of this format`, options);
  }
}

/** An object's file lacks its footer or disagrees with it: it was changed by something other than cellkit. */
export class CorruptObjectError extends BucketError {
  override readonly name = "CorruptObjectError";
  readonly code = "CELLKIT_BUCKET_CORRUPT";
  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(`object file ${path} is damaged (${reason}); restore it or remove the file`, options);
  }
}

/** The file system failed in a way that is neither a full disk nor a permission. */
export class BucketDiskError extends BucketError {
  override readonly name = "BucketDiskError";
  readonly code = "CELLKIT_BUCKET_DISK";
  constructor(bucket: string, reason: string, options?: ErrorOptions) {
    super(`bucket ${bucket}: the file system failed (${reason}); check the disk`, options);
  }
}

/** The bucket was closed before the call. */
export class BucketClosedError extends BucketError {
  override readonly name = "BucketClosedError";
  readonly code = "CELLKIT_BUCKET_CLOSED";
  constructor(bucket: string, options?: ErrorOptions) {
    super(`bucket ${bucket} is closed; open it again`, options);
  }
}

/** The embedded server could not listen: the port is taken or not allowed. */
export class BucketListenError extends BucketError {
  override readonly name = "BucketListenError";
  readonly code = "CELLKIT_BUCKET_LISTEN";
  constructor(host: string, port: number, reason: string, options?: ErrorOptions) {
    super(
      `the bucket server cannot listen on ${host}:${port} (${reason}); take another port or stop what holds it`,
      options,
    );
  }
}

/** The credentials file is unreadable, malformed, or readable by others than its owner. */
export class CredentialsFileError extends BucketError {
  override readonly name = "CredentialsFileError";
  readonly code = "CELLKIT_BUCKET_CREDENTIALS_FILE";
  constructor(file: string, reason: string, options?: ErrorOptions) {
    super(`credentials file ${file} ${reason}; correct it, or remove it to have a new pair made`, options);
  }
}

/**
 * The embedded server's refusal of one request; it becomes an S3 error answer and never leaves the server.
 * `message` is sent to the client: it must not contain secrets.
 */
export class RequestRefusal extends BucketError {
  override readonly name = "RequestRefusal";
  readonly code = "CELLKIT_BUCKET_REQUEST_REFUSED";
  /** HTTP status. */
  readonly status: number;
  /** S3's error code, as in `<Code>`. */
  readonly s3Code: string;
  constructor(status: number, s3Code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.s3Code = s3Code;
  }
}

function shorten(key: string): string {
  return key.length <= 200 ? key : `${key.slice(0, 200)}…`;
}
