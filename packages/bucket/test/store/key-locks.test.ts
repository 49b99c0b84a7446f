import { closeSync, openSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { tryLock, unlock } from "../../src/store/flock.ts";
import { KeyLocks } from "../../src/store/key-locks.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

async function open(directory: string) {
  const locks = new KeyLocks(directory);
  onTestFinished(() => locks.close());
  return locks;
}

describe("the lock of a key", () => {
  it("is held by one at a time, in the order of asking", async () => {
    const locks = await open(await temporaryDirectory());
    const order: string[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const release = await locks.acquire("k");
        order.push(`in ${index}`);
        await sleep(1);
        order.push(`out ${index}`);
        release?.();
      }),
    );
    expect(order).toEqual(Array.from({ length: 20 }, (_, index) => [`in ${index}`, `out ${index}`]).flat());
  });

  it("is passed fairly between two stores on one directory", async () => {
    const directory = await temporaryDirectory();
    const stores = [await open(directory), await open(directory)];
    const turns: number[] = [];
    let inside = 0;
    await Promise.all(
      stores.flatMap((locks, store) =>
        Array.from({ length: 30 }, async () => {
          const release = await locks.acquire("k");
          inside += 1;
          expect(inside).toBe(1);
          turns.push(store);
          await sleep(2);
          inside -= 1;
          release?.();
        }),
      ),
    );
    // Whoever began, the other must not have to wait for all 30. Without turns it would: who releases comes back at once.
    const first = turns.slice(0, 30);
    expect(first.filter((store) => store === 0).length).toBeGreaterThan(2);
    expect(first.filter((store) => store === 1).length).toBeGreaterThan(2);
  });

  it("is another one for another key", async () => {
    const locks = await open(await temporaryDirectory());
    const release = await locks.acquire("a");
    (await locks.acquire("b"))?.();
    release?.();
  });

  it("is not waited for once the signal is aborted, and is free afterwards", async () => {
    const directory = await temporaryDirectory();
    const [one, two] = [await open(directory), await open(directory)];
    const release = await one.acquire("k");
    const abort = new AbortController();
    const waiting = two.acquire("k", abort.signal);
    abort.abort(new TypeError("enough"));
    await expect(waiting).rejects.toMatchObject({ name: "AbortError", cause: { message: "enough" } });
    release?.();
    (await two.acquire("k"))?.();
    await expect(two.acquire("k", AbortSignal.abort(new TypeError("before")))).rejects.toThrow("before");
  });

  it("is not waited for once it is not wanted any more", async () => {
    const directory = await temporaryDirectory();
    const [one, two] = [await open(directory), await open(directory)];
    const release = await one.acquire("k");
    let wanted = true;
    let askedCount = 0;
    const stillWanted = () => {
      askedCount += 1;
      return wanted;
    };
    const waiting = [one, two, two].map((locks) => locks.acquire("k", undefined, stillWanted));
    // One of them has found the lock taken, and tries again.
    await vi.waitFor(() => expect(askedCount).toBeGreaterThan(3), 20_000);
    wanted = false;
    expect(await waiting[1]).toBeUndefined();
    expect(await waiting[2]).toBeUndefined();
    release?.();
    expect(await waiting[0]).toBeUndefined();
    (await two.acquire("k"))?.();
  });

  it("is closed only when it was released", async () => {
    const locks = new KeyLocks(await temporaryDirectory());
    const release = await locks.acquire("k");
    let closed = false;
    const closing = locks.close().then(() => {
      closed = true;
    });
    await setImmediate();
    expect(closed).toBe(false);
    release?.();
    await closing;
  });

  it("takes two files of 256 pairs, the same ones for every process", async () => {
    const directory = await temporaryDirectory();
    const locks = await open(directory);
    (await locks.acquire("fleet/v1/nodes/a.json"))?.();
    expect((await readdir(directory)).sort()).toEqual(["6d.lock", "6d.turn"]);
  });
});

describe("flock", () => {
  it("excludes two open files in one process, exclusive or shared", async () => {
    const path = join(await temporaryDirectory(), "lock");
    const [a, b] = [openSync(path, "a"), openSync(path, "a")];
    expect(tryLock(a)).toBe(true);
    expect(tryLock(b)).toBe(false);
    unlock(a);
    expect([tryLock(a, "shared"), tryLock(b, "shared"), tryLock(b)]).toEqual([true, true, false]);
    closeSync(a);
    expect(tryLock(b)).toBe(true);
    closeSync(b);
    expect(() => tryLock(b)).toThrow(expect.objectContaining({ code: "CELLKIT_BUCKET_DISK" }));
  });
});
