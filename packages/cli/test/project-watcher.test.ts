import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { ProjectWatcher } from "../src/project-watcher.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let watcher: ProjectWatcher;
let changes: string[];

beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  await directory.write("project/src/deep/a.js", "a");
  await directory.write("project/data/object", "1");
  await directory.write("project/node_modules/p/index.js", "p");
  await directory.write("elsewhere/shared.js", "s");
  changes = [];
  watcher = new ProjectWatcher(join(directory.path, "project"), {
    ignore: join(directory.path, "project/data"),
    onChange: (file) => changes.push(file),
    onError: (error) => changes.push(error.message),
  });
});
afterEach(async () => {
  watcher.close();
  await directory.remove();
});

/** Waits until a change of that file is told. */
const told = (file: string) => until(`change of ${file} in ${changes}`, () => changes.includes(file));

describe("it tells", () => {
  describe("by a clock that the test turns", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    /** Writes until the watcher has seen it: it waits for quiet then, and the clock stands still. */
    async function seen(): Promise<void> {
      do {
        await directory.write("project/src/deep/a.js", "a");
        await new Promise((resolve) => setImmediate(resolve));
      } while (vi.getTimerCount() === 0);
    }

    it("a changed file in any folder, once for a burst", async () => {
      for (let turn = 0; turn < 20; turn += 1) await seen();
      expect(changes).toEqual([]);
      await vi.advanceTimersByTimeAsync(100);
      expect(changes).toEqual(["src/deep/a.js"]);
    });
  });

  it("a file in a folder that was made meanwhile, and in one that was replaced", async () => {
    await mkdir(join(directory.path, "project/lib"));
    await told("lib");
    await directory.write("project/lib/b.js", "b");
    await told("lib/b.js");
    await rm(join(directory.path, "project/src"), { recursive: true });
    await told("src");
    await mkdir(join(directory.path, "next/deep"), { recursive: true });
    await rename(join(directory.path, "next"), join(directory.path, "project/src"));
    changes.length = 0;
    await until("watch on the new folder", async () => {
      await directory.write("project/src/deep/c.js", "c");
      return changes.includes("src/deep/c.js");
    });
  });

  it("a file outside of the project that it was told to follow", async () => {
    watcher.follow([join(directory.path, "elsewhere/shared.js")]);
    await directory.write("elsewhere/shared.js", "t");
    await told("../elsewhere/shared.js");
  });
});

it("it leaves out packages, the fleet's data, and everything after its close", async () => {
  await directory.write("project/node_modules/p/index.js", "q");
  await directory.write("project/node_modules/q/index.js", "q");
  await directory.write("project/data/object", "2");
  await directory.write("project/data/another", "2");
  await directory.write("project/src/deep/a.js", "last");
  await told("src/deep/a.js");
  await directory.write("project/src/deep/a.js", "later");
  watcher.close();
  watcher.close();
  // Of a pause between two of its events a file is told twice.
  expect(new Set(changes)).toEqual(new Set(["src/deep/a.js"]));
  changes.length = 0;
  const other = new ProjectWatcher(join(directory.path, "project"), {
    ignore: "/nowhere",
    onChange: (file) => changes.push(`other ${file}`),
    onError: () => undefined,
  });
  await writeFile(join(directory.path, "project/src/deep/a.js"), "much later");
  await told("other src/deep/a.js");
  other.close();
  expect(new Set(changes)).toEqual(new Set(["other src/deep/a.js"]));
});
