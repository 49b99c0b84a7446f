import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Ambiguous, type BucketOptions, type ConditionalWrite, openBucket } from "../../src/index.ts";
import { text } from "../support/bucket-conformance.ts";
import { type Fault, startFaultProxy } from "../support/fault-proxy.ts";
import { clientOptions, credentials, startServer } from "../support/server.ts";

/** A bucket behind a faulty network, and the same bucket reached directly. */
async function setUp(choose: (method: string, count: number) => Fault, options: BucketOptions = {}) {
  const server = await startServer();
  const proxy = await startFaultProxy(server, choose);
  const bucket = openBucket("s3://cells", clientOptions(proxy, { timeoutMs: 30_000, ...options }));
  const direct = openBucket("s3://cells", clientOptions(server));
  onTestFinished(async () => {
    await bucket.close();
    await direct.close();
  });
  const puts = () => proxy.seen.filter((line) => line.startsWith("PUT")).length;
  return { bucket, direct, proxy, puts, server };
}

function ambiguous(write: ConditionalWrite): Ambiguous {
  expect(write).toMatchObject({ kind: "ambiguous", cause: { code: "CELLKIT_BUCKET_UNREACHABLE" } });
  return write as Ambiguous;
}

/** Timers of this time end when `expire` is called, and not by the clock. */
function letGoOf(ofMs: number): { expire(): void } {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  let expiry = new AbortController();
  const spy = vi
    .spyOn(AbortSignal, "timeout")
    .mockImplementation((ms) => (ms === ofMs ? expiry.signal : timeout(ms)));
  onTestFinished(() => spy.mockRestore());
  return {
    expire: () => {
      expiry.abort(new DOMException("the time is up", "TimeoutError"));
      expiry = new AbortController();
    },
  };
}

/** The first PUT suffers the fault, everything else passes. */
const firstPut =
  (fault: Fault) =>
  (method: string, count: number): Fault =>
    method === "PUT" && count === 1 ? fault : { kind: "pass" };

describe("a conditional write", () => {
  it("whose answer is lost is ambiguous, is not repeated, and settles as applied", async () => {
    const { bucket, direct, puts } = await setUp(firstPut({ kind: "lose-answer" }));
    const write = ambiguous(await bucket.createIfAbsent("k", "ours"));
    expect(puts()).toBe(1);
    expect(await write.settle()).toEqual({ kind: "applied", etag: (await direct.get("k"))?.etag });
    expect(puts()).toBe(1);
  });

  it("whose answer never comes is ambiguous once its time is up", async () => {
    const { bucket } = await setUp(firstPut({ kind: "hang" }), { timeoutMs: 200 });
    const write = ambiguous(await bucket.createIfAbsent("k", "ours"));
    expect((await write.settle()).kind).toBe("applied");
  });

  it("that is aborted after it was sent is ambiguous too", async () => {
    const abort = new AbortController();
    const { bucket } = await setUp((method) => {
      if (method === "PUT") abort.abort();
      return { kind: "pass" };
    });
    const write = ambiguous(await bucket.createIfAbsent("k", "ours", { signal: abort.signal }));
    expect((await write.settle()).kind).toBe("applied");
  });

  it("settles as rejected when somebody else's bytes are there", async () => {
    const { bucket, direct } = await setUp(firstPut({ kind: "answer", status: 503, code: "SlowDown" }));
    const write = ambiguous(await bucket.createIfAbsent("k", "ours"));
    await direct.put("k", "theirs, and longer");
    expect(await write.settle()).toEqual({ kind: "rejected" });
  });

  it("that did not reach the store is sent again by settling, for the key is as it was", async () => {
    const { bucket, direct, puts } = await setUp(
      firstPut({ kind: "answer", status: 500, code: "InternalError" }),
    );
    const write = ambiguous(await bucket.createIfAbsent("k", "ours"));
    expect(puts()).toBe(1);
    expect((await write.settle()).kind).toBe("applied");
    expect(text(await direct.get("k"))).toBe("ours");
  });

  it("that arrives late, after it was settled, changes nothing any more", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { bucket, direct, proxy } = await setUp(firstPut({ kind: "deliver-late", released }));
    const { etag } = await direct.put("k", "before");
    const write = ambiguous(await bucket.replaceIf("k", "ours", etag));
    const settled = await write.settle();
    expect(settled.kind).toBe("applied");
    const next = await direct.replaceIf("k", "the next one", settled.kind === "applied" ? settled.etag : "");
    expect(next.kind).toBe("applied");
    release();
    await Promise.all(proxy.late);
    expect(proxy.late).toHaveLength(1);
    expect(text(await direct.get("k"))).toBe("the next one");
  });

  it.each([
    ["ours", "applied", undefined],
    ["another object", "rejected", "put"],
    ["no object", "rejected", "delete"],
  ] as const)("of a replacement settles by what the key holds: %s", async (_, expected, change) => {
    const fault: Fault =
      change === undefined ? { kind: "lose-answer" } : { kind: "answer", status: 503, code: "SlowDown" };
    const { bucket, direct, puts } = await setUp(firstPut(fault));
    const { etag } = await direct.put("k", "before");
    const write = ambiguous(await bucket.replaceIf("k", "ours", etag));
    if (change === "put") await direct.put("k", "theirs");
    if (change === "delete") await direct.delete("k");
    expect((await write.settle()).kind).toBe(expected);
    expect(puts()).toBe(1);
  });

  it("is sent again at once where the store says that it was not made (409), and no more than four times", async () => {
    const conflict: Fault = { kind: "answer", status: 409, code: "ConditionalRequestConflict" };
    const few = await setUp((method, count) =>
      method === "PUT" && count <= 2 ? conflict : { kind: "pass" },
    );
    expect((await few.bucket.createIfAbsent("k", "ours")).kind).toBe("applied");
    expect(few.puts()).toBe(3);
    const many = await setUp((method, count) =>
      method === "PUT" && count <= 4 ? conflict : { kind: "pass" },
    );
    const write = ambiguous(await many.bucket.createIfAbsent("k", "ours"));
    expect(many.puts()).toBe(4);
    expect((await write.settle()).kind).toBe("applied");
  });

  it("that certainly was not made throws, and says why", async () => {
    const { bucket } = await setUp((method) =>
      method === "PUT" ? { kind: "answer", status: 507, code: "InsufficientStorage" } : { kind: "pass" },
    );
    await expect(bucket.createIfAbsent("k", "")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_FULL" });
    const odd = await setUp((method) =>
      method === "PUT" ? { kind: "answer", status: 400, code: "InvalidArgument" } : { kind: "pass" },
    );
    await expect(odd.bucket.createIfAbsent("k", "")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_ANSWER" });
    const nobody = openBucket("s3://cells", { endpoint: "http://user:hidden@127.0.0.1:1/path", credentials });
    const call = nobody.createIfAbsent("k", "");
    await expect(call).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_UNREACHABLE",
      endpoint: "http://127.0.0.1:1",
      message: expect.stringMatching(/at the endpoint http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)/),
    });
    await expect(call).rejects.not.toMatchObject({ message: expect.stringContaining("hidden") });
    await nobody.close();
  });
});

describe("settling", () => {
  it("goes on while the store cannot be read", async () => {
    let gets = 0;
    const { bucket } = await setUp((method) => {
      if (method === "PUT") return { kind: "lose-answer" };
      gets += 1;
      return gets <= 8 ? { kind: "answer", status: 503, code: "SlowDown" } : { kind: "pass" };
    });
    const write = ambiguous(await bucket.createIfAbsent("k", "ours"));
    expect((await write.settle()).kind).toBe("applied");
    expect(gets).toBeGreaterThan(8);
  });

  it("ends at its time, at its signal, and where reading is senseless; and can be called again", async () => {
    const settleTimeoutMs = 54_321;
    const timers = letGoOf(settleTimeoutMs);
    let fault: Fault = { kind: "answer", status: 503, code: "SlowDown" };
    let gets = 0;
    const { bucket } = await setUp(
      (method) => {
        if (method === "PUT") return { kind: "lose-answer" };
        gets += 1;
        // The time of the first settling is up when it has read in vain; later ones have time enough.
        if (gets === 3) timers.expire();
        return fault;
      },
      { settleTimeoutMs, readAttemptCount: 1 },
    );
    const write = ambiguous(await bucket.createIfAbsent("k", "ours"));
    await expect(write.settle()).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_UNSETTLED",
      cause: { code: "CELLKIT_BUCKET_UNREACHABLE" },
    });
    await expect(write.settle({ signal: AbortSignal.abort(new TypeError("enough")) })).rejects.toThrow(
      "enough",
    );
    fault = { kind: "answer", status: 403, code: "AccessDenied" };
    await expect(write.settle()).rejects.toMatchObject({ code: "CELLKIT_BUCKET_ACCESS_DENIED" });
    fault = { kind: "pass" };
    expect((await write.settle()).kind).toBe("applied");
  });
});

describe("other calls", () => {
  it("read again after a 5xx, but write once", async () => {
    const { bucket, direct, proxy } = await setUp((_, count) =>
      count === 1 ? { kind: "answer", status: 503, code: "SlowDown" } : { kind: "pass" },
    );
    await direct.put("k", "x");
    expect(text(await bucket.get("k"))).toBe("x");
    await expect(bucket.put("k", "y")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_UNREACHABLE" });
    await expect(bucket.delete("k")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_UNREACHABLE" });
    expect(proxy.seen.map((line) => line.split(" ")[0])).toEqual(["GET", "GET", "PUT", "DELETE"]);
  });

  it("say which credentials, bucket or endpoint is wrong", async () => {
    const server = await startServer();
    const open = (url: string, options: BucketOptions) => {
      const bucket = openBucket(url, clientOptions(server, options));
      onTestFinished(() => bucket.close());
      return bucket;
    };
    const wrongSecret = open("s3://cells", { credentials: { ...credentials, secretAccessKey: "wrong" } });
    await expect(wrongSecret.get("k")).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_ACCESS_DENIED",
      message: expect.not.stringContaining("wrong"),
    });
    await expect(wrongSecret.createIfAbsent("k", "")).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_ACCESS_DENIED",
    });
    const wrongId = open("s3://cells", { credentials: { ...credentials, accessKeyId: "AKIAWRONG" } });
    await expect(wrongId.put("k", "")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_ACCESS_DENIED" });
    const noBucket = open("s3://other", {});
    const wants = [
      () => noBucket.get("k"),
      () => noBucket.put("k", ""),
      () => noBucket.createIfAbsent("k", ""),
    ];
    for (const call of wants) {
      await expect(call()).rejects.toMatchObject({ code: "CELLKIT_BUCKET_NO_BUCKET" });
    }
    const noStore = await startFaultProxy(server, () => ({ kind: "answer", status: 404, code: "" }));
    const notS3 = open("s3://cells", { endpoint: noStore.endpoint });
    for (const call of [() => notS3.get("k"), () => notS3.createIfAbsent("k", "")]) {
      await expect(call()).rejects.toMatchObject({ code: "CELLKIT_BUCKET_ANSWER" });
    }
    const wrongRegion = open("s3://cells", { region: "eu-west-1" });
    await expect(wrongRegion.put("k", "")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_ANSWER" });
  });
});
