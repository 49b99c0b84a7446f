import { closeSync, openSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { fromBytes, keyBytes, toBytes } from "../../src/core/object-key.ts";
import { DirectorySync } from "../../src/store/directory-sync.ts";
import { tryLock } from "../../src/store/flock.ts";
import { afterKey, listing } from "../../src/store/listing.ts";
import { ObjectStore } from "../../src/store/object-store.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

async function openStore(directory?: string) {
  const store = await ObjectStore.open(directory ?? join(await temporaryDirectory(), "bucket"));
  onTestFinished(() => store.close());
  return store;
}

async function put(store: ObjectStore, key: string, content = key): Promise<void> {
  const staged = store.stage();
  await staged.write(Buffer.from(content));
  staged.finish({});
  expect(await store.put(key, staged, { kind: "none" })).toEqual({ kind: "applied" });
}

async function list(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const item of listing(store, { prefix: "", delimiter: "", from: "" }))
    keys.push("key" in item ? item.key : item.prefix);
  return keys;
}

describe("a bucket directory", () => {
  it("is made from nothing or from an empty directory, also by many at once", async () => {
    const directory = join(await temporaryDirectory(), "a", "b");
    const stores = await Promise.all(Array.from({ length: 8 }, () => openStore(directory)));
    expect(stores).toHaveLength(8);
    expect((await readdir(directory)).sort()).toEqual([
      "cellkit-bucket.json",
      "locks",
      "objects",
      "staging",
      "uploads",
    ]);
  });

  it.each([
    ["holds something else", "notes.txt", "x"],
    ["is of a later format", "cellkit-bucket.json", '{"format":"cellkit-bucket-9"}'],
    ["has a marker that is no JSON", "cellkit-bucket.json", "{"],
  ])("that %s is refused and left alone", async (_, name, content) => {
    const directory = await temporaryDirectory();
    await writeFile(join(directory, name), content);
    await expect(ObjectStore.open(directory)).rejects.toMatchObject({ code: "CELLKIT_BUCKET_FORMAT" });
    expect(await readdir(directory)).toEqual([name]);
  });

  it.each<[string, (directory: string) => Promise<unknown>]>([
    ["removed", (directory) => rm(directory, { recursive: true })],
    [
      "replaced by an empty one",
      async (directory) => {
        await rename(directory, `${directory}.away`);
        await mkdir(directory);
      },
    ],
    [
      "replaced by another bucket",
      async (directory) => {
        await rename(directory, `${directory}.away`);
        await openStore(directory);
      },
    ],
  ])("that was %s under an open store is no empty bucket", async (_, change) => {
    const directory = join(await temporaryDirectory(), "bucket");
    const store = await ObjectStore.open(directory);
    onTestFinished(() => store.close().catch(() => undefined));
    await put(store, "a/key");
    await put(store, "other");
    await change(directory);
    const gone = { code: "CELLKIT_BUCKET_DISK", message: expect.stringContaining("removed or replaced") };
    await expect(store.open("a/key")).rejects.toMatchObject(gone);
    await expect(store.head("never")).rejects.toMatchObject(gone);
    await expect(store.precheck("a/key", { kind: "absent" })).rejects.toMatchObject(gone);
    await expect(store.delete("never", { kind: "none" })).rejects.toMatchObject(gone);
    await expect(list(store)).rejects.toMatchObject(gone);
    await expect(put(store, "a/key")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_DISK" });
    expect(await readdir(join(directory, "objects")).catch(() => [])).toEqual([]);
  });

  it("below a file, or with too long a path, is refused", async () => {
    const directory = await temporaryDirectory();
    await writeFile(join(directory, "file"), "");
    await expect(ObjectStore.open(join(directory, "file", "x"))).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_DISK",
    });
    await expect(ObjectStore.open(`/${"x".repeat(950)}`)).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_FORMAT",
    });
  });

  it("is cleaned of what dead processes staged, and of nothing that the living did", async () => {
    const directory = join(await temporaryDirectory(), "bucket");
    const living = await openStore(directory);
    const staged = living.stage();
    await staged.write(Buffer.alloc(300_000));
    const staging = living.layout.staging;
    await mkdir(join(staging, "dead"));
    await writeFile(join(staging, "dead", "1"), "half an object");
    const before = await readdir(staging);
    expect(before).toHaveLength(3);
    await openStore(directory);
    const after = await readdir(staging);
    expect(after).not.toContain("dead");
    expect(after).toHaveLength(3);
    staged.finish({});
    expect(await living.put("k", staged, { kind: "absent" })).toEqual({ kind: "applied" });
    const fd = openSync(join(staging, after.find((name) => name !== "gate") ?? ""), "r");
    expect(tryLock(fd)).toBe(false);
    closeSync(fd);
  });

  it("keeps no folder of its own once it is closed", async () => {
    const store = await openStore();
    await put(store, "a/b");
    await store.close();
    await store.close();
    expect(await readdir(store.layout.staging)).toEqual(["gate"]);
    expect(() => store.stage()).toThrow(expect.objectContaining({ code: "CELLKIT_BUCKET_CLOSED" }));
  });
});

describe("an object's file", () => {
  it("holds the content as it is, and then its footer", async () => {
    const store = await openStore();
    await put(store, "dir/Key", "content");
    const bytes = await readFile(join(store.layout.objects, "dir+", "%4bey="));
    expect(bytes.toString("latin1")).toMatch(
      /^content\{"etag":"9a0364b9e99bb480dd25e1f0284c8555","sizeBytes":7,.*cellkit1$/s,
    );
  });

  it.each([
    ["cut short", (bytes: Buffer) => bytes.subarray(0, -5)],
    ["cut at the front", (bytes: Buffer) => bytes.subarray(1)],
    ["overwritten", () => Buffer.from("something else")],
    ["empty", () => Buffer.alloc(0)],
  ])("that was %s is reported, not read", async (_, damage) => {
    const store = await openStore();
    await put(store, "k", "content");
    const path = join(store.layout.objects, "k=");
    await writeFile(path, damage(await readFile(path)));
    await expect(store.open("k")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_CORRUPT" });
  });

  it("stays readable while its key is replaced and deleted", async () => {
    const store = await openStore();
    const content = "x".repeat(500_000);
    await put(store, "k", content);
    const object = await store.open("k");
    await put(store, "k", "other");
    await store.delete("k", { kind: "none" });
    let read = "";
    for await (const piece of object?.read(0, content.length) ?? []) read += Buffer.from(piece).toString();
    object?.close();
    expect(read).toBe(content);
  });

  it("is never made with a footer that could not be read", async () => {
    const store = await openStore();
    const staged = store.stage();
    expect(() => staged.finish({ "content-type": "x".repeat(20_000) })).toThrow(
      expect.objectContaining({ code: "CELLKIT_BUCKET_OPTION" }),
    );
    await staged.discard();
  });
});

describe("folders", () => {
  it("that became empty are removed at the latest when the store closes, others stay", async () => {
    const store = await openStore();
    for (const key of ["a/b/c", "a/d", "e/f"]) await put(store, key);
    await store.delete("a/b/c", { kind: "none" });
    await store.delete("e/f", { kind: "none" });
    await store.close();
    expect((await readdir(store.layout.objects, { recursive: true })).sort()).toEqual([
      "a+",
      join("a+", "d="),
    ]);
  });

  it("that a crash left empty are found by a listing and removed", async () => {
    const store = await openStore();
    await mkdir(join(store.layout.objects, "left+", "over+"), { recursive: true });
    for await (const _ of listing(store, { prefix: "", delimiter: "", from: "" })) void _;
    await store.close();
    expect(await readdir(store.layout.objects)).toEqual([]);
  });

  it("may be removed under a writer, who makes them again", async () => {
    const store = await openStore();
    const remove = async (...names: string[]) => {
      await rmdir(join(store.layout.objects, ...names)).catch((error: { code: string }) => {
        expect(["ENOTEMPTY", "ENOENT"]).toContain(error.code);
      });
    };
    for (let round = 0; round < 30; round += 1) {
      const removing = remove("a+", "b+").then(() => remove("a+"));
      await Promise.all([put(store, `a/b/${round}`), removing]);
      await store.delete(`a/b/${round}`, { kind: "none" });
    }
    await put(store, "a/b/last");
    expect(await store.head("a/b/last")).toBeDefined();
  });
});

describe("a listing", () => {
  it("answers what a sorted array would, for any keys, prefix, delimiter and start", async () => {
    const part = fc.constantFrom(
      "a",
      "b",
      "/",
      "A",
      "é",
      "😀",
      "-",
      "0",
      ".",
      "x".repeat(79),
      "y".repeat(80),
    );
    const key = fc
      .array(part, { minLength: 1, maxLength: 8 })
      .map((parts) => parts.join(""))
      .filter((text) => !text.split("/").includes(".."));
    const store = await openStore();
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(key, { maxLength: 12 }),
        fc.oneof(fc.constant(""), key),
        fc.constantFrom("", "/", "a", "é", "//"),
        fc.oneof(fc.constant(undefined), key),
        async (keys, prefix, delimiter, startAfter) => {
          for (const name of await readdir(store.layout.objects))
            await rm(join(store.layout.objects, name), { recursive: true });
          for (const name of keys) {
            const path = store.pathOf(keyBytes(name));
            await mkdir(join(path, ".."), { recursive: true });
            await writeFile(path, objectFile);
          }
          const listed: string[] = [];
          const query = {
            prefix: toBytes(prefix),
            delimiter: toBytes(delimiter),
            from: startAfter === undefined ? "" : afterKey(toBytes(startAfter)),
          };
          for await (const item of listing(store, query)) {
            listed.push(
              item.kind === "object" ? `key ${fromBytes(item.key)}` : `prefix ${fromBytes(item.prefix)}`,
            );
          }
          expect(listed).toEqual(expectedListing(keys, prefix, delimiter, startAfter));
        },
      ),
      { seed: inject("seed"), numRuns: inject("size") === "long" ? 500 : 60 },
    );
  });
});

/** The file of an empty object. */
const objectFile = (() => {
  const json = '{"etag":"d41d8cd98f00b204e9800998ecf8427e","sizeBytes":0,"headers":{}}';
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([Buffer.from(json), length, Buffer.from("cellkit1")]);
})();

function expectedListing(
  keys: readonly string[],
  prefix: string,
  delimiter: string,
  startAfter: string | undefined,
): string[] {
  const compare = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  const lines = keys
    .filter((key) => key.startsWith(prefix) && (startAfter === undefined || compare(key, startAfter) > 0))
    .sort(compare)
    .map((key) => {
      const at = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      return at < 0 ? `key ${key}` : `prefix ${key.slice(0, at + delimiter.length)}`;
    });
  return lines.filter((line, index) => line !== lines[index - 1]);
}

describe("directory fsyncs", () => {
  it("are shared by those who wait for the same directory", async () => {
    const root = await temporaryDirectory();
    await mkdir(join(root, "a"));
    const sync = new DirectorySync(root);
    await sync.sync(join(root, "a"));
    const waiters = Array.from({ length: 100 }, () => sync.sync(join(root, "a")));
    // Two that run, and one for all others.
    expect(new Set(waiters).size).toBe(3);
    await Promise.all(waiters);
  });

  it("of a directory that was removed are those of its parent", async () => {
    const root = await temporaryDirectory();
    await new DirectorySync(root).sync(join(root, "gone", "deeper"));
  });

  it("fail for all who wait", async () => {
    const root = join(await temporaryDirectory(), "gone");
    const sync = new DirectorySync(root);
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => sync.sync(join(root, "a"))));
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => "rejected"));
  });
});
