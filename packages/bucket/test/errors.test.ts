import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import * as errors from "../src/errors.ts";

const cause = new TypeError("why");
const table: readonly [string, errors.BucketError, RegExp][] = [
  ["URL", new errors.BucketUrlError("x://", "unknown", { cause }), /"x:\/\/": unknown; write s3:/],
  ["OPTION", new errors.BucketOptionError("timeoutMs is 0", { cause }), /timeoutMs is 0/],
  ["KEY", new errors.BucketKeyError("k".repeat(900), "is long", { cause }), /^object key "k{200}…" is long$/],
  [
    "UNREACHABLE",
    new errors.BucketUnreachableError("s3://b", "ECONNREFUSED", { cause }),
    /ECONNREFUSED.*endpoint/,
  ],
  ["ACCESS_DENIED", new errors.BucketAccessDeniedError("s3://b", "403", { cause }), /403.*credentials/],
  ["NO_BUCKET", new errors.NoBucketError("s3://b", { cause }), /s3:\/\/b does not exist; create it/],
  ["FULL", new errors.BucketFullError("/d", { cause }), /no space left.*add disk space/],
  ["TOO_LARGE", new errors.ObjectTooLargeError("k", 5, { cause }), /more than 5 bytes.*maxBytes/],
  ["RANGE", new errors.ObjectRangeError("k", "[9, 10)", { cause }), /\[9, 10\) holds no byte/],
  ["UNSETTLED", new errors.UnsettledWriteError("k", 100, { cause }), /after 100 ms.*call settle\(\) again/],
  ["ANSWER", new errors.BucketAnswerError("s3://b", "400 Bad", { cause }), /answered 400 Bad/],
  ["UNDECIDED", new errors.UndecidedWriteError("/d", { cause }), /perhaps not durable/],
  [
    "FORMAT",
    new errors.BucketFormatError("/d", "is no bucket", { cause }),
    /\/d is no bucket; name an empty/,
  ],
  [
    "CORRUPT",
    new errors.CorruptObjectError("/d/o", "no footer", { cause }),
    /\/d\/o is damaged \(no footer\)/,
  ],
  ["DISK", new errors.BucketDiskError("/d", "EIO", { cause }), /EIO.*check the disk/],
  ["CLOSED", new errors.BucketClosedError("s3://b", { cause }), /closed; open it again/],
  [
    "LISTEN",
    new errors.BucketListenError("h", 1, "EADDRINUSE", { cause }),
    /h:1 \(EADDRINUSE\); take another port/,
  ],
  ["CREDENTIALS_FILE", new errors.CredentialsFileError("/f", "is bad", { cause }), /\/f is bad; correct it/],
  ["REQUEST_REFUSED", new errors.RequestRefusal(400, "Bad", "no", { cause }), /^no$/],
];

describe("errors", () => {
  it.each(table)("%s has its code, its name, a message that helps, and its cause", (what, error, message) => {
    expect(error.code).toBe(`CELLKIT_BUCKET_${what}`);
    expect(error.name).toBe(error.constructor.name);
    expect(error.message).toMatch(message);
    expect(error.cause).toBe(cause);
    expect(error).toBeInstanceOf(errors.BucketError);
  });

  it("do not call a store silent that answers with a failure", () => {
    const { message } = new errors.BucketUnreachableError("s3://b", "503 SlowDown");
    expect(message).toMatch(/s3:\/\/b answered with a failure \(503 SlowDown\)/);
  });

  it("are all in the README, and nothing else is", async () => {
    const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
    const listed = [...readme.matchAll(/^\| `(CELLKIT_BUCKET_[A-Z_]+)` +\|/gm)].map(([, code]) => code);
    expect(listed.sort()).toEqual(table.map(([, { code }]) => code).sort());
  });

  it("has every class in this table", () => {
    const classes = Object.values(errors).filter((value) => value !== errors.BucketError);
    expect(new Set(table.map(([, error]) => error.constructor))).toEqual(new Set(classes));
  });
});
