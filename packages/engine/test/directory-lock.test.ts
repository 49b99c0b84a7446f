import { spawn } from "node:child_process";
import { once } from "node:events";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { type DirectoryLock, lockProvesDeath, openDirectoryLock } from "../src/directory-lock.ts";
import { identifyProcess, type ProcessIdentity } from "../src/process-identity.ts";
import { makeLocalDirectory } from "./support/local-directory.ts";

const { signal } = new AbortController();
let directory: string;
let child: ProcessIdentity;

beforeEach(async () => {
  directory = await makeLocalDirectory();
  const self = await identifyProcess(process.pid);
  if (self === undefined) throw new TypeError("there is no /proc here");
  child = { ...self, namespace: "pid:[1]" };
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function open(patienceMs?: number): Promise<DirectoryLock> {
  const lock = await openDirectoryLock(directory, patienceMs);
  if (lock === undefined) throw new TypeError("no lock");
  onTestFinished(() => lock.close());
  return lock;
}

it("has one holder, and a second one waits no longer than it is told", async () => {
  const [first, second] = [await open(), await open(50)];
  await first.take(signal);
  await first.take(signal);
  const refused = second.take(signal);
  await expect(refused).rejects.toMatchObject({ code: "CELLKIT_ENGINE_DATA_DIRECTORY" });
  await expect(refused).rejects.toThrow(`${directory} is in use by another node`);
  await first.close();
  await first.close();
  await second.take(signal);
});

it("ends its waiting with the signal", async () => {
  await (await open()).take(signal);
  const ending = new AbortController();
  const waiting = (await open()).take(ending.signal);
  ending.abort(new TypeError("enough"));
  await expect(waiting).rejects.toThrow("enough");
});

it("is held by a process that inherited it, until that one ends", async () => {
  const first = await open();
  await first.take(signal);
  const heir = spawn("sleep", ["60"], { stdio: ["ignore", "ignore", "ignore", first.fd] });
  onTestFinished(() => void heir.kill("SIGKILL"));
  await once(heir, "spawn");
  await first.close();
  const second = await open(50);
  await expect(second.take(signal)).rejects.toThrow("in use");
  await expect(lockProvesDeath(second, { child, lock: second.file }, signal)).rejects.toThrow("in use");
  heir.kill("SIGKILL");
  await once(heir, "exit");
  expect(await lockProvesDeath(second, { child, lock: second.file }, signal)).toBe(true);
});

it("proves nothing of another boot, another file, or a process without it", async () => {
  const lock = await open();
  const former = { child, lock: lock.file };
  expect(await lockProvesDeath(undefined, former, signal)).toBe(false);
  expect(await lockProvesDeath(lock, { child }, signal)).toBe(false);
  expect(await lockProvesDeath(lock, { ...former, child: { ...child, bootId: "other" } }, signal)).toBe(
    false,
  );
  await rename(join(directory, "lock"), join(directory, "moved"));
  const other = await open();
  expect(await lockProvesDeath(other, former, signal)).toBe(false);
  expect(await lockProvesDeath(lock, former, signal)).toBe(true);
});

it("is none where the kernel does not know it alone", async () => {
  // proc is no file system of the list.
  expect(await openDirectoryLock("/proc/self")).toBeUndefined();
});
