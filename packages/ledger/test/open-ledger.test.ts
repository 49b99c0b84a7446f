import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { openLedger, parseLedgerUrl } from "../src/open-ledger.ts";

it.each([
  ["a path", "/var/lib/ownership", { kind: "posix", directory: "/var/lib/ownership" }],
  ["a relative path", "data/x", { kind: "posix", directory: resolve("data/x") }],
  ["a path with a colon", "./a:b", { kind: "posix", directory: resolve("a:b") }],
  ["a file URL", "file:///var/my%20ledger/", { kind: "posix", directory: "/var/my ledger" }],
  ["an S3 bucket", "s3://cells/router", { kind: "bucket", url: "s3://cells/router" }],
  ["a database", "postgres://u:p@h/d", { kind: "postgres", connection: "postgres://u:p@h/d" }],
  ["a database's other name", "postgresql://h/d", { kind: "postgres", connection: "postgresql://h/d" }],
])("%s names its store", (_, url, location) => {
  expect(parseLedgerUrl(url)).toEqual(location);
});

it.each([
  ["nothing", "", /empty/],
  ["another store", "mysql://user:hunter2@host/db", /no ledger lies at mysql/],
  ["a file URL of another host", "file://user:hunter2@host/path", /no path of this machine/],
  ["a file URL that is none", "file://user:hunter2@[/path", /no path of this machine/],
  ["a database whose password has a slash", "postgres://u:12/hunter2@h/d", /percent-encode/],
])("%s is refused, without its secrets", (_, url, message) => {
  expect(() => parseLedgerUrl(url)).toThrow(message);
  expect(() => parseLedgerUrl(url)).toThrow(expect.objectContaining({ code: "CELLKIT_LEDGER_OPTION" }));
  expect(() => parseLedgerUrl(url)).not.toThrow(/hunter2/);
});

it("a directory and a bucket that this version cannot open", async () => {
  const directory = await mkdtemp(join(tmpdir(), "ledger-open-"));
  try {
    await using ledger = await openLedger(directory, { name: "parents", capacity: 5, lockTimeoutMs: 100 });
    expect(ledger).toMatchObject({ name: "parents", capacity: 5 });
    await expect(openLedger("gs://cells")).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_OPTION",
      cause: { code: "CELLKIT_BUCKET_URL" },
    });
    await expect(openLedger(`${directory}/none`, { requireExisting: true })).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_MISSING",
    });
  } finally {
    await rm(directory, { recursive: true });
  }
});

it("a bucket's endpoint is an option, and the message of one that does not answer shows it", async () => {
  const bucket = {
    endpoint: "http://127.0.0.1:1",
    credentials: { accessKeyId: "test-key", secretAccessKey: "test-secret" },
    readAttemptCount: 1,
  };
  await expect(openLedger("s3://cells/router", { bucket })).rejects.toThrow(
    /gave no answer at the endpoint http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)/,
  );
});

it.each(["s3://user:hunter2@cells/x", "s3://cells/x?secret=hunter2", "gs://user:hunter2@cells"])(
  "of %s nothing is shown that may be a password",
  async (url) => {
    const opened = openLedger(url);
    await expect(opened).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
    await expect(opened).rejects.not.toThrow(/hunter2/);
  },
);
