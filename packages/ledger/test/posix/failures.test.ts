import { closeSync, linkSync, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { tryLock, unlock } from "@cellkit/bucket/flock";
import { expect, it, onTestFinished, vi } from "vitest";
import { LedgerUnavailableError, LedgerUnsupportedError } from "../../src/errors.ts";
import { type FileCalls, immediateCalls, pooledCalls } from "../../src/posix/file-calls.ts";
import { openWithCalls, type PosixLedgerOptions } from "../../src/posix/open-posix-ledger.ts";
import { chooses, temporaryDirectory } from "../support/posix-place.ts";

const errno = (code: string) => Object.assign(new Error(`${code}: made by a test`), { code });

/** A ledger whose system calls a test may replace while it runs. */
async function openFaulty(options: Partial<PosixLedgerOptions> = {}, calls: FileCalls = immediateCalls) {
  const directory = options.directory ?? (await temporaryDirectory());
  const faults: Partial<FileCalls> = {};
  const faulty = new Proxy(calls, { get: (_, name: keyof FileCalls) => faults[name] ?? calls[name] });
  const ledger = await openWithCalls({ ...options, directory }, { calls: faulty, local: true });
  onTestFinished(() => ledger.close());
  const records = () => readdirSync(directory).filter((name) => name.endsWith(".json"));
  const staged = () => readdirSync(join(directory, ".claim-staging"));
  return { ledger, faults, directory, records, staged };
}

it("a file whose fsync failed is never published, and the others of its group are", async () => {
  const { ledger, faults, records, staged } = await openFaulty();
  let count = 0;
  faults.fsync = async (fd) => {
    count += 1;
    if (count === 2) throw errno("EIO");
    await immediateCalls.fsync(fd);
  };
  const claims = await Promise.allSettled(["a", "b", "c"].map((id) => ledger.claim(id, "body", chooses())));
  expect(claims.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(claims[1]).toMatchObject({ reason: { code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "no" } });
  expect(records()).toHaveLength(2);
  expect(staged()).toEqual([]);
  delete faults.fsync;
  expect((await ledger.claim("b", "body", chooses())).kind).toBe("new");
});

it("when the directory's fsync fails, the whole group may be recorded and nobody is told new", async () => {
  const { ledger, faults, staged } = await openFaulty();
  faults.fsync = async (fd) => {
    if ((await immediateCalls.fstat(fd)).isDirectory()) throw errno("EIO");
    await immediateCalls.fsync(fd);
  };
  const claims = await Promise.allSettled(["a", "b", "c"].map((id) => ledger.claim(id, "body", chooses())));
  for (const claim of claims)
    expect(claim).toMatchObject({ reason: { code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "maybe" } });
  expect(staged()).toEqual([]);
  delete faults.fsync;
  expect((await ledger.claim("a", "body", chooses("http://other"))).kind).toBe("existing");
  expect((await ledger.claim("d", "body", chooses())).kind).toBe("new");
});

it.each([
  ["ENOSPC", "its disk is full"],
  ["EDQUOT", "its quota is used up"],
  ["EROFS", "read-only"],
])("%s at any step is said plainly, and nothing was recorded", async (code, words) => {
  const { ledger, faults, records, staged } = await openFaulty();
  for (const step of ["open", "write", "fsync", "link"] as const) {
    if (step === "link") faults.linkEach = async (pairs) => pairs.map(() => ({ error: errno(code) }));
    else if (step === "open") {
      faults.open = async (path, flags, mode) => {
        if (path.includes(".claim-staging")) throw errno(code);
        return immediateCalls.open(path, flags, mode);
      };
    } else
      faults[step] = async () => {
        throw errno(code);
      };
    const claim = ledger.claim(step, "body", chooses());
    await expect(claim, step).rejects.toMatchObject({
      recorded: "no",
      message: expect.stringContaining(words),
    });
    for (const name of Object.keys(faults) as (keyof FileCalls)[]) delete faults[name];
  }
  expect({ records: records(), staged: staged() }).toEqual({ records: [], staged: [] });
  expect((await ledger.claim("link", "body", chooses())).kind).toBe("new");
});

it("a record is written whole, also when the system writes it in parts", async () => {
  const { ledger, faults } = await openFaulty();
  faults.write = (fd, bytes) => immediateCalls.write(fd, bytes.subarray(0, 7));
  await ledger.claim("a", "body", chooses());
  expect((await ledger.lookup("a"))?.backend).toBe("http://10.20.0.11:8787");
});

it("a link that was made although its answer was lost (NFS) is ours", async () => {
  const { ledger, faults } = await openFaulty();
  faults.linkEach = async (pairs) =>
    pairs.map(([existing, name]) => {
      linkSync(existing, name);
      return { error: errno("EEXIST") };
    });
  expect((await ledger.claim("a", "body", chooses())).kind).toBe("new");
});

it("a link that is refused although no record is there is no full ledger", async () => {
  const { ledger, faults } = await openFaulty();
  faults.linkEach = async (pairs) => pairs.map(() => ({ error: errno("EEXIST") }));
  await expect(ledger.claim("a", "body", chooses())).rejects.toMatchObject({
    code: "CELLKIT_LEDGER_UNAVAILABLE",
    recorded: "maybe",
  });
});

it("a long line behind a lock that others hold is refused when the time of its first is up", async () => {
  const { ledger, faults, directory } = await openFaulty({ lockTimeoutMs: 100 });
  const fd = openSync(join(directory, "ownership.lock"), "r+");
  onTestFinished(() => closeSync(fd));
  expect(tryLock(fd)).toBe(true);
  let stagedCount = 0;
  faults.open = async (path, flags, mode) => {
    if (path.includes(".claim-staging")) stagedCount += 1;
    return immediateCalls.open(path, flags, mode);
  };
  // All come into the line at once, so that their times are up at once.
  const chosen = Promise.withResolvers<string>();
  let choosingCount = 0;
  const choose = () => {
    choosingCount += 1;
    if (choosingCount === 1_000) chosen.resolve("http://a:1");
    return chosen.promise;
  };
  const ids = Array.from({ length: 1_000 }, (_, index) => `id-${index}`);
  const claims = await Promise.allSettled(ids.map((id) => ledger.claim(id, "body", choose)));
  for (const claim of claims) expect(claim).toMatchObject({ reason: { code: "CELLKIT_LEDGER_BUSY" } });
  // The first group; and another one for each time that this process paused while they came into the line.
  expect(stagedCount).toBeLessThan(ids.length - 128);
  unlock(fd);
  expect((await ledger.claim("id-0", "body", chooses())).kind).toBe("new");
});

it("the time in our own line is none that others held the lock", async () => {
  const { ledger, faults, directory } = await openFaulty({ lockTimeoutMs: 30_000 });
  const fd = openSync(join(directory, "ownership.lock"), "r+");
  onTestFinished(() => closeSync(fd));
  const now = performance.now.bind(performance);
  onTestFinished(() => void vi.restoreAllMocks());
  // The second group comes when all its claims have waited for longer than they may for the lock, and finds it held.
  faults.linkEach = async (pairs) => {
    vi.spyOn(performance, "now").mockImplementation(() => now() + 60_000);
    delete faults.linkEach;
    return immediateCalls.linkEach(pairs);
  };
  let fileCount = 0;
  let wasHeld = false;
  faults.fsync = async (file) => {
    await immediateCalls.fsync(file);
    if (!(await immediateCalls.fstat(file)).isFile()) return;
    fileCount += 1;
    if (fileCount !== 200) return;
    wasHeld = tryLock(fd);
    setTimeout(() => unlock(fd), 50);
  };
  const ids = Array.from({ length: 200 }, (_, index) => `id-${index}`);
  const claims = await Promise.all(ids.map((id) => ledger.claim(id, "body", chooses())));
  expect(claims.filter(({ kind }) => kind === "new")).toHaveLength(200);
  expect(wasHeld).toBe(true);
});

it("what fails when the ledger is closed is nobody's concern", async () => {
  const { ledger, faults } = await openFaulty();
  faults.close = async (fd) => {
    await immediateCalls.close(fd);
    throw errno("EIO");
  };
  await ledger.close();
});

it("a link that failed strangely may be recorded", async () => {
  const { ledger, faults } = await openFaulty();
  faults.linkEach = async (pairs) => pairs.map(() => ({ error: errno("EIO") }));
  await expect(ledger.claim("a", "body", chooses())).rejects.toMatchObject({ recorded: "maybe" });
});

it("a record that cannot be read is no absent one", async () => {
  const { ledger, faults } = await openFaulty();
  await ledger.claim("a", "body", chooses());
  for (const code of ["EACCES", "EIO", "ESTALE", "EMFILE"]) {
    faults.open = async () => {
      throw errno(code);
    };
    await expect(ledger.lookup("a"), code).rejects.toThrow(LedgerUnavailableError);
    await expect(ledger.claim("a", "body", chooses()), code).rejects.toThrow(code);
  }
});

it("a directory that cannot be listed makes new claims fail, and known ids keep their answers", async () => {
  const { ledger, faults } = await openFaulty({ capacity: 500 });
  await ledger.claim("a", "body", chooses());
  faults.eachName = async () => {
    throw errno("EACCES");
  };
  expect((await ledger.claim("a", "body", chooses())).kind).toBe("existing");
  await expect(ledger.claim("b", "body", chooses())).rejects.toMatchObject({
    recorded: "no",
    message: expect.stringContaining("list its directory"),
  });
  await expect(ledger.count()).rejects.toThrow(LedgerUnavailableError);
});

it("a staging folder that somebody removed is made again", async () => {
  const { ledger, directory } = await openFaulty();
  const { rmSync } = await import("node:fs");
  rmSync(join(directory, ".claim-staging"), { recursive: true });
  expect((await ledger.claim("a", "body", chooses())).kind).toBe("new");
});

it("refuses to start where the lock excludes nobody", async () => {
  const directory = await temporaryDirectory();
  let locks = 0;
  const calls: FileCalls = {
    ...immediateCalls,
    open: (path, flags, mode) => {
      // As if each open of the lock file were a lock of its own, like a server without locks.
      if (path.endsWith("ownership.lock")) locks += 1;
      const second = path.endsWith("ownership.lock") && locks > 1;
      return immediateCalls.open(second ? `${path}.2` : path, flags, mode);
    },
  };
  const opened = openWithCalls({ directory }, { calls, local: true });
  await expect(opened).rejects.toThrow(LedgerUnsupportedError);
  await expect(opened).rejects.toThrow(/two could hold its lock/);
});

it.each(["EINVAL", "ENOTSUP"])("refuses to start where a directory's fsync answers %s", async (code) => {
  const calls: FileCalls = {
    ...immediateCalls,
    fsync: async (fd) => {
      if ((await immediateCalls.fstat(fd)).isDirectory()) throw errno(code);
    },
  };
  const opened = openWithCalls({ directory: await temporaryDirectory() }, { calls, local: true });
  await expect(opened).rejects.toMatchObject({ code: "CELLKIT_LEDGER_UNSUPPORTED" });
});

it("keeps the rules through the pool, too, as on a network file system", async () => {
  const { ledger, staged } = await openFaulty({ capacity: 40, retirable: true }, pooledCalls);
  const ids = Array.from({ length: 60 }, (_, index) => `id-${index % 50}`);
  const claims = await Promise.all(ids.map((id) => ledger.claim(id, "body", chooses())));
  const count = (kind: string) => claims.filter((claim) => claim.kind === kind).length;
  expect(count("new")).toBe(40);
  expect(count("new") + count("existing") + count("full")).toBe(60);
  expect(await ledger.lookup("never")).toBeUndefined();
  expect(await ledger.retire("never", { quarantineMs: 0 })).toBe(false);
  expect(await ledger.count()).toBe(40);
  expect(staged()).toEqual([]);
});
