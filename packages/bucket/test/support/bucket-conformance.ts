/** What every bucket does, whatever stores it. */
import { describe, expect, it } from "vitest";
import type { Bucket, BucketOptions, ConditionalWrite, StoredObject } from "../../src/index.ts";

/** Opens a fresh, empty bucket for one test, closed by the caller's own means when the test ends. */
export type OpenForTest = (options?: BucketOptions) => Promise<Bucket>;

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

export function text(object: StoredObject | undefined): string | undefined {
  return object && Buffer.from(object.body).toString("utf8");
}

function etagOf(write: ConditionalWrite): string {
  if (write.kind !== "applied") throw new TypeError(`the write was ${write.kind}`);
  return write.etag;
}

export function describeBucket(name: string, open: OpenForTest): void {
  describe(`a bucket at ${name}`, () => {
    it("reads what was written, and nothing where nothing was", async () => {
      const bucket = await open();
      const { etag } = await bucket.put("dir/key", "content");
      expect(await bucket.get("dir/key")).toEqual({
        body: new Uint8Array(Buffer.from("content")),
        etag,
        sizeBytes: 7,
      });
      expect(await bucket.get("dir")).toBeUndefined();
      expect(await bucket.get("dir/key/more")).toBeUndefined();
    });

    it("reads ranges, and says so when a range holds nothing", async () => {
      const bucket = await open();
      await bucket.put("k", "0123456789");
      const part = await bucket.get("k", { range: { start: 2, end: 5 } });
      expect([text(part), part?.sizeBytes]).toEqual(["234", 10]);
      expect(text(await bucket.get("k", { range: { start: 8 } }))).toBe("89");
      expect(text(await bucket.get("k", { range: { start: 8, end: 99 } }))).toBe("89");
      for (const range of [{ start: 10 }, { start: 5, end: 5 }]) {
        await expect(bucket.get("k", { range })).rejects.toMatchObject({ code: "CELLKIT_BUCKET_RANGE" });
      }
    });

    it("reads again only what changed", async () => {
      const bucket = await open();
      const { etag } = await bucket.put("k", "one");
      expect(await bucket.get("k", { ifNoneMatch: etag })).toEqual({ notModified: true, etag });
      await bucket.put("k", "two");
      expect(text((await bucket.get("k", { ifNoneMatch: etag })) as StoredObject)).toBe("two");
    });

    it("refuses a body over the limit", async () => {
      const bucket = await open({ maxBytes: 10 });
      await bucket.put("k", "x".repeat(11));
      await expect(bucket.get("k")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_TOO_LARGE" });
      expect(text(await bucket.get("k", { range: { start: 0, end: 3 } }))).toBe("xxx");
      expect(text(await bucket.get("k", { maxBytes: 11 }))).toBe("x".repeat(11));
    });

    it("creates a key once", async () => {
      const bucket = await open();
      const first = await bucket.createIfAbsent("k", "one");
      expect(first).toEqual({ kind: "applied", etag: expect.any(String) });
      expect(await bucket.createIfAbsent("k", "two")).toEqual({ kind: "rejected" });
      expect(text(await bucket.get("k"))).toBe("one");
      await bucket.delete("k");
      expect((await bucket.createIfAbsent("k", "three")).kind).toBe("applied");
    });

    it("replaces exactly the object that was read", async () => {
      const bucket = await open();
      const first = etagOf(await bucket.createIfAbsent("k", "one"));
      const second = etagOf(await bucket.replaceIf("k", "two", first));
      expect(second).not.toBe(first);
      expect(await bucket.replaceIf("k", "three", first)).toEqual({ kind: "rejected" });
      expect(text(await bucket.get("k"))).toBe("two");
      expect(await bucket.replaceIf("none", "x", first)).toEqual({ kind: "rejected" });
      expect((await bucket.get("k"))?.etag).toBe(second);
    });

    it("deletes, and finds an absent key fine", async () => {
      const bucket = await open();
      await bucket.put("k", "x");
      await bucket.delete("k");
      await bucket.delete("k");
      expect(await bucket.get("k")).toBeUndefined();
    });

    it("lists keys in the order of their bytes", async () => {
      const bucket = await open();
      const beforeMs = Date.now();
      const keys = [
        "a",
        "a/b",
        "a!",
        "A",
        "a//",
        "é",
        "😀",
        "\uffee",
        "z".repeat(300),
        `${"z".repeat(300)}/y`,
        "z",
      ];
      for (const key of keys) await bucket.put(key, key);
      const listed = await collect(bucket.list(""));
      const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(listed.map(({ key }) => key)).toEqual(sorted);
      expect(listed.map(({ sizeBytes }) => sizeBytes)).toEqual(sorted.map((key) => Buffer.byteLength(key)));
      expect(listed[0]).toEqual({
        key: "A",
        etag: (await bucket.get("A"))?.etag,
        sizeBytes: 1,
        modifiedMs: expect.any(Number),
      });
      // Whole seconds perhaps, by the clock of the disk.
      expect(listed[0]?.modifiedMs).toBeGreaterThan(beforeMs - 60_000);
      expect(listed[0]?.modifiedMs).toBeLessThan(Date.now() + 60_000);
    });

    it("lists by prefix, delimiter and start", async () => {
      const bucket = await open();
      for (const key of ["a/1", "a/2", "a/b/3", "a0", "b/4"]) await bucket.put(key, "");
      const keys = async (prefix: string, options?: { startAfter: string }) =>
        (await collect(bucket.list(prefix, options))).map(({ key }) => key);
      expect(await keys("a/")).toEqual(["a/1", "a/2", "a/b/3"]);
      expect(await keys("a")).toEqual(["a/1", "a/2", "a/b/3", "a0"]);
      expect(await keys("a/b/3")).toEqual(["a/b/3"]);
      expect(await keys("none")).toEqual([]);
      expect(await keys("", { startAfter: "a/2" })).toEqual(["a/b/3", "a0", "b/4"]);
      const lines = async (prefix: string, delimiter: string) =>
        (await collect(bucket.list(prefix, { delimiter }))).map((item) =>
          "key" in item ? item.key : [item.prefix],
        );
      expect(await lines("", "/")).toEqual([["a/"], "a0", ["b/"]]);
      expect(await lines("a/", "/")).toEqual(["a/1", "a/2", ["a/b/"]]);
      expect(await lines("a", "/")).toEqual([["a/"], "a0"]);
    });

    it("lists no folder whose last object was deleted", async () => {
      const bucket = await open();
      await bucket.put("gone/deep/key", "");
      await bucket.put("stays", "");
      await bucket.delete("gone/deep/key");
      expect(await collect(bucket.list("", { delimiter: "/" }))).toEqual([
        expect.objectContaining({ key: "stays" }),
      ]);
    });

    it.each([
      "..a",
      "a/../b",
      "a/./b",
      "/",
      "//",
      "a/",
      "/a",
      " ",
      "a b+c%20&<>\"'",
      "CON",
      "Case",
      "case",
      "ünïcödé/😀",
      "x".repeat(255),
      "x".repeat(1000),
      "?#",
      "a\u0001b",
      "cellkit-bucket.json",
    ])("keeps key %j apart from others", async (key) => {
      const bucket = await open();
      await bucket.put(key, key);
      await bucket.put(`${key.slice(0, 900)}/below`, "below");
      expect(text(await bucket.get(key))).toBe(key);
      await bucket.delete(key);
      expect(await bucket.get(key)).toBeUndefined();
      expect(text(await bucket.get(`${key.slice(0, 900)}/below`))).toBe("below");
    });

    it.each(["", "../up", "a/../../up", "..", "x".repeat(1025), "a\ud800"])("refuses key %j", async (key) => {
      const bucket = await open();
      const refusal = { code: "CELLKIT_BUCKET_KEY" };
      await expect(bucket.get(key)).rejects.toMatchObject(refusal);
      await expect(bucket.put(key, "")).rejects.toMatchObject(refusal);
      await expect(bucket.createIfAbsent(key, "")).rejects.toMatchObject(refusal);
      await expect(bucket.delete(key)).rejects.toMatchObject(refusal);
    });

    it("keeps bodies of every size whole", async () => {
      const bucket = await open();
      for (const size of [0, 1, 16_000, 16_384, 300_000, 3_000_000]) {
        const body = Buffer.alloc(size, `${size}.`);
        await bucket.put("k", body);
        const read = await bucket.get("k");
        expect(read?.sizeBytes).toBe(size);
        expect(Buffer.compare(read?.body ?? new Uint8Array(), body)).toBe(0);
        if (size > 20_000) {
          const range = { start: size - 17_000, end: size - 5 };
          expect(text(await bucket.get("k", { range }))).toBe(body.toString("utf8", range.start, range.end));
        }
      }
    });

    it("lets one of 64 racing writers win, round after round", async () => {
      const bucket = await open();
      for (let round = 0; round < 3; round += 1) {
        const outcomes = await Promise.all(
          Array.from({ length: 64 }, (_, writer) => bucket.createIfAbsent(`race/${round}`, String(writer))),
        );
        const winners = outcomes.flatMap(({ kind }, writer) => (kind === "applied" ? [String(writer)] : []));
        expect(winners).toEqual([text(await bucket.get(`race/${round}`))]);
      }
    });

    it("does nothing once its signal is aborted", async () => {
      const bucket = await open();
      const signal = AbortSignal.abort(new TypeError("enough"));
      await expect(bucket.get("k", { signal })).rejects.toThrow("enough");
      await expect(bucket.put("k", "", { signal })).rejects.toThrow("enough");
      await expect(bucket.createIfAbsent("k", "", { signal })).rejects.toThrow("enough");
      await expect(bucket.delete("k", { signal })).rejects.toThrow("enough");
      await expect(collect(bucket.list("", { signal }))).rejects.toThrow("enough");
      expect(await bucket.get("k")).toBeUndefined();
    });

    it("does nothing once it is closed", async () => {
      const bucket = await open();
      await bucket.put("k", "");
      await bucket.close();
      await bucket.close();
      const refusal = { code: "CELLKIT_BUCKET_CLOSED" };
      await expect(bucket.get("k")).rejects.toMatchObject(refusal);
      await expect(bucket.put("k", "")).rejects.toMatchObject(refusal);
      await expect(bucket.createIfAbsent("k", "")).rejects.toMatchObject(refusal);
      await expect(bucket.delete("k")).rejects.toMatchObject(refusal);
      await expect(collect(bucket.list(""))).rejects.toMatchObject(refusal);
    });
  });
}
