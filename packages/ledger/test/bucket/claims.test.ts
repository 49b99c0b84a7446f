import { readdir, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type Bucket,
  BucketAccessDeniedError,
  BucketUnreachableError,
  NoBucketError,
  openBucket,
  UndecidedWriteError,
} from "@cellkit/bucket";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import { loadDigest } from "../../src/digest.ts";
import { type ServedBucket, serveTestBucket } from "../support/bucket-places.ts";
import { type Calls, seam } from "../support/bucket-seam.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";
const owner = (backend: string) => async () => backend;
const isPutOfRecord = (line: string) => /^PUT \S+\/[0-9a-f]{64}\.json/.test(line);

/** The file in a bucket's directory that holds the record of a key. */
async function findFile(directory: string, key: string): Promise<string> {
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  const file = found.find(
    (entry) => entry.isFile() && entry.name.startsWith(key.slice(0, 60)) && entry.name.endsWith("="),
  );
  return join(file?.parentPath ?? "", file?.name ?? "");
}

let served: ServedBucket;
let count = 0;
let name = "";
beforeAll(async () => {
  served = await serveTestBucket();
});
beforeEach(() => {
  served.fault = () => "pass";
  count += 1;
  name = `claims-${count}`;
});
afterAll(() => served[Symbol.asyncDispose]());

describe("a claim in a bucket", () => {
  it("is told new to one at most, also when two write one owner and one body and both lose the answer", async () => {
    const first = await openBucketLedger({ bucket: served.open(served.relayed), name });
    const second = await openBucketLedger({ bucket: served.open(served.relayed), name });
    served.fault = (line) => (isPutOfRecord(line) ? "lose-answer" : "pass");
    for (let round = 0; round < 10; round += 1) {
      const claims = await Promise.all(
        [first, second].map((ledger) => ledger.claim(`id ${round}`, "body", owner(A))),
      );
      expect(claims.map(({ kind }) => kind).toSorted()).toEqual(["existing", "new"]);
    }
  });

  it("is new although something on the way sent it twice and the second was refused", async () => {
    const ledger = await openBucketLedger({ bucket: served.open(served.relayed), name });
    served.fault = (line) => (isPutOfRecord(line) ? "send-twice" : "pass");
    expect(await ledger.claim("id", "body", owner(A))).toMatchObject({ kind: "new", owner: { backend: A } });
    expect((await ledger.claim("id", "body", owner(A))).kind).toBe("existing");
  });

  it("lies in the bucket as a record that any reader of files takes, with white space that is its own", async () => {
    const bucket = served.open();
    const ledger = await openBucketLedger({ bucket, name });
    const digest = await loadDigest();
    const texts: string[] = [];
    for (const id of ["one", "two"]) {
      await ledger.claim(id, "body", owner(A));
      const object = await bucket.get(`ledger/${name}/${digest.key(id)}.json`);
      texts.push(Buffer.from(object?.body ?? []).toString("utf8"));
    }
    const [one = "", two = ""] = texts;
    expect(JSON.parse(one)).toEqual({ version: 1, backend: A, body_hash: digest.bodyHash("body") });
    expect(one.trimEnd()).toBe(two.trimEnd());
    expect(one.slice(one.trimEnd().length)).toMatch(/^[ \t\n\r]{64}$/);
    expect(one).not.toBe(two);
  });

  it("that was ended on the way may stand; the next one learns it", async () => {
    const ledger = await openBucketLedger({ bucket: served.open(served.relayed), name });
    const abort = new AbortController();
    served.fault = (line) => {
      if (isPutOfRecord(line)) abort.abort(new TypeError("enough"));
      return "pass";
    };
    await expect(ledger.claim("id", "body", owner(A), { signal: abort.signal })).rejects.toThrow("enough");
    served.fault = () => "pass";
    const again = await ledger.claim("id", "body", owner(B));
    expect(again).toMatchObject({ kind: "existing", owner: { backend: A } });
  });

  it("is never new by bytes that can be read but are perhaps not on the disk", async () => {
    const inner = served.open();
    const bucket = seam(inner, {
      async createIfAbsent(key, body, options) {
        const write = await inner.createIfAbsent(key, body, options);
        if (!/[0-9a-f]{64}/.test(key) || write.kind !== "applied") return write;
        return { kind: "ambiguous", cause: new UndecidedWriteError("b"), settle: async () => write };
      },
    });
    const ledger = await openBucketLedger({ bucket, name });
    const claim = ledger.claim("id", "body", owner(A));
    await expect(claim).rejects.toMatchObject({ code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "maybe" });
    expect((await ledger.claim("id", "body", owner(B))).kind).toBe("existing");
  });

  it("whose store is gone fails, says whether it may stand, and can be made again", async () => {
    await using own = await serveTestBucket();
    const bucket = own.open({ settleTimeoutMs: 200, readAttemptCount: 1 });
    const ledger = await openBucketLedger({ bucket });
    const gone = ledger.claim("id", "body", async () => {
      await own.stop();
      return A;
    });
    await expect(gone).rejects.toMatchObject({ code: "CELLKIT_LEDGER_UNAVAILABLE" });
    await expect(ledger.claim("id", "body", owner(A))).rejects.toMatchObject({ recorded: "no" });
    const other = await openBucketLedger({ bucket: openBucket(own.fileUrl), closeBucket: true });
    expect((await other.claim("id", "body", owner(B))).kind).toBe("new");
    await other.close();
  });

  it("whose writing is denied, or finds no bucket any more, was not recorded", async () => {
    const inner = served.open();
    for (const failure of [new BucketAccessDeniedError("b", "AccessDenied"), new NoBucketError("b")]) {
      const createIfAbsent: Calls["createIfAbsent"] = async (key, body, options) => {
        if (key.endsWith("ledger.json")) return inner.createIfAbsent(key, body, options);
        throw failure;
      };
      const ledger = await openBucketLedger({ bucket: seam(inner, { createIfAbsent }), name });
      const claim = ledger.claim("id", "body", owner(A));
      await expect(claim).rejects.toMatchObject({ recorded: "no", cause: failure });
      expect(await ledger.lookup("id")).toBeUndefined();
    }
  });

  it("whose record's file was damaged on the server's disk is refused, and the file is left as it is", async () => {
    await using own = await serveTestBucket();
    for (const bucket of [openBucket(own.fileUrl), own.open({ readAttemptCount: 1 })]) {
      const ledger = await openBucketLedger({ bucket });
      await ledger.claim("id", "body", owner(A));
      const { key } = await loadDigest();
      const file = await findFile(fileURLToPath(own.fileUrl), key("id"));
      await truncate(file, 40);
      const isFile = bucket.url.startsWith("file:");
      const code = isFile ? "CELLKIT_LEDGER_CORRUPT" : "CELLKIT_LEDGER_UNAVAILABLE";
      await expect(ledger.claim("id", "body", owner(B))).rejects.toMatchObject({ code });
      expect((await stat(file)).size).toBe(40);
      if (isFile) await bucket.close();
      await rm(file);
    }
  });

  it("whose outcome cannot be found out may have been recorded", async () => {
    const inner = served.open();
    const cause = new BucketUnreachableError("b", "reset");
    const bucket = seam(inner, {
      createIfAbsent: async (key, body, options) =>
        key.endsWith("ledger.json")
          ? inner.createIfAbsent(key, body, options)
          : { kind: "ambiguous", cause, settle: () => Promise.reject(cause) },
    });
    const ledger = await openBucketLedger({ bucket, name });
    await expect(ledger.claim("id", "body", owner(A))).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_UNAVAILABLE",
      recorded: "maybe",
      cause,
    });
  });

  it("waits for nobody whose id comes and goes: it fails after some tries", async () => {
    const inner = served.open();
    let tries = 0;
    const bucket = seam(inner, {
      async createIfAbsent(key, body, options) {
        if (key.endsWith("ledger.json")) return inner.createIfAbsent(key, body, options);
        tries += 1;
        return { kind: "rejected" };
      },
    });
    const ledger = await openBucketLedger({ bucket, name });
    await expect(ledger.claim("id", "body", owner(A))).rejects.toMatchObject({ recorded: "no" });
    expect(tries).toBe(8);
  });
});

describe("a ledger in a bucket", () => {
  it("takes no capacity", async () => {
    const opening = openBucketLedger({ bucket: served.open(), name, capacity: 1_000 });
    await expect(opening).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
  });

  it("is one ledger for all who create it at once", async () => {
    const opened = await Promise.all(
      Array.from({ length: 8 }, () => openBucketLedger({ bucket: served.open(), name })),
    );
    expect(new Set(opened.map(({ ledgerId }) => ledgerId)).size).toBe(1);
    expect(opened[0]).toMatchObject({ url: `s3://cells/ledger/${name}`, name, capacity: undefined });
  });

  it("that has records and lost its ledger.json counts as missing where it must exist", async () => {
    const bucket = served.open();
    await (await openBucketLedger({ bucket, name })).claim("id", "body", owner(A));
    await bucket.delete(`ledger/${name}/ledger.json`);
    const opening = openBucketLedger({ bucket, name, requireExisting: true });
    await expect(opening).rejects.toMatchObject({ code: "CELLKIT_LEDGER_MISSING" });
    expect(await bucket.get(`ledger/${name}/ledger.json`)).toBeUndefined();
  });

  it.each(["", "{", '{"format":2,"ledgerId":"8a7a4bb6-9bb1-4f6c-9c5a-1b6a3a5f3c52"}', '{"format":1}'])(
    "of another format is refused and left as it is: ledger.json %j",
    async (text) => {
      const bucket = served.open();
      await bucket.put(`ledger/${name}/ledger.json`, text);
      const code = "CELLKIT_LEDGER_UNSUPPORTED";
      await expect(openBucketLedger({ bucket, name })).rejects.toMatchObject({ code });
      const object = await bucket.get(`ledger/${name}/ledger.json`);
      expect(Buffer.from(object?.body ?? []).toString()).toBe(text);
    },
  );

  it("tells what stands in the way at the door, without a secret", async () => {
    const credentials = { accessKeyId: "ledger-test", secretAccessKey: "a wrong secret" };
    const denied = openBucketLedger({ bucket: served.open({ credentials }), name });
    await expect(denied).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_UNAVAILABLE",
      recorded: "no",
      cause: { code: "CELLKIT_BUCKET_ACCESS_DENIED" },
      message: expect.not.stringContaining("a wrong secret"),
    });
    await using elsewhere = openBucket("s3://no-such-bucket", served.options);
    const cause = { code: "CELLKIT_BUCKET_NO_BUCKET" };
    await expect(openBucketLedger({ bucket: elsewhere, name })).rejects.toMatchObject({ cause });
  });

  it("takes no record that is too long with its white space, by a claim or from elsewhere", async () => {
    const ledger = await openBucketLedger({ bucket: served.open(), name });
    const { key } = await loadDigest();
    // Each of these characters takes six bytes in JSON.
    const claim = ledger.claim("id", "body", owner(`http://${"\u0001".repeat(660)}`));
    await expect(claim).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OWNER" });
    const bodyHash = "x".repeat(4_000);
    const restored = ledger.restore(key("id"), { backend: A, bodyHash });
    await expect(restored).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
    expect(await ledger.lookup("id")).toBeUndefined();
    expect(await ledger.restore(key("id"), { backend: A, bodyHash: "x".repeat(3_950) })).toBe("added");
    expect((await ledger.lookup("id"))?.bodyHash).toHaveLength(3_950);
  });

  it("closes the caller's bucket only when told to", async () => {
    const bucket = served.open();
    await (await openBucketLedger({ bucket, name })).close();
    expect(await bucket.get("nothing")).toBeUndefined();
    await (await openBucketLedger({ bucket, name, closeBucket: true })).close();
    await expect(bucket.get("nothing")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_CLOSED" });
  });

  it("tells of a bucket that cannot be closed, and of one that is none, as a ledger does", async () => {
    const bucket = seam(served.open(), {});
    bucket.close = () => Promise.reject(Object.assign(new Error("EIO"), { code: "EIO" }));
    const ledger = await openBucketLedger({ bucket, name, closeBucket: true });
    await expect(ledger.close()).rejects.toMatchObject({ code: "CELLKIT_LEDGER_UNAVAILABLE" });
    const none = openBucketLedger({ bucket: "s3://bucket" as unknown as Bucket });
    await expect(none).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
  });

  it("shows everything in its folder, and counts only records", async () => {
    const bucket = served.open();
    const ledger = await openBucketLedger({ bucket, name, retirable: true });
    const digest = await loadDigest();
    for (const id of ["kept", "marked", "freed"]) await ledger.claim(id, "body", owner(A));
    await ledger.retire("marked", { quarantineMs: 60_000 });
    const later = await openBucketLedger({ bucket, name, retirable: true, now: () => Date.now() + 120_000 });
    expect(await later.retire("freed", { quarantineMs: 60_000 })).toBe(true);
    await bucket.put(`ledger/${name}/notes.txt`, "x");
    await bucket.put(`ledger/${name}/${digest.key("nobody")}.retired`, '"etag"');
    await bucket.put(`ledger/${name}/${digest.key("broken")}.json`, '{"version":2}');
    const found = new Map<string, { problem: string | undefined; marked: boolean }>();
    for await (const { key, problem, marked } of ledger.entries()) found.set(key, { problem, marked });
    expect(found).toEqual(
      new Map([
        [digest.key("kept"), { problem: undefined, marked: false }],
        [digest.key("marked"), { problem: undefined, marked: true }],
        [digest.key("broken"), { problem: expect.stringContaining("lacks backend"), marked: false }],
        [digest.key("nobody"), { problem: "a mark without a record", marked: true }],
        ["notes.txt", { problem: "this is no object of a ledger", marked: false }],
      ]),
    );
    expect(await ledger.count()).toBe(3);
    expect(await ledger.entry(digest.key("freed"))).toBeUndefined();
  });
});
