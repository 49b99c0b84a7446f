// A node whose data directory is taken away can open no cell any more: it must not look well.
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import type { EngineError } from "../src/errors.ts";
import { identifyProcess, processFate } from "../src/process-identity.ts";
import { startFleet, type TestFleet } from "./support/fleet.ts";
import { ask } from "./support/http.ts";
import { rooms } from "./support/workers.ts";

let fleet: TestFleet;

beforeEach(async () => {
  fleet = await startFleet();
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
});

it.each([
  [
    "deleted",
    (directory: string) => rm(directory, { recursive: true, maxRetries: 5 }),
    /cannot be used: ENOENT/,
  ],
  [
    "replaced",
    async (directory: string) => {
      await rename(directory, `${directory}.moved`);
      await mkdir(join(directory, "cells"), { recursive: true });
      await writeFile(join(directory, "engine.json"), "of another node");
    },
    /was replaced while the node ran/,
  ],
])("a directory that is %s ends the node, and a survivor serves its cells", async (_, lose, problem) => {
  await fleet.deploy({ source: rooms, classes: ["Room"] });
  const failures: EngineError[] = [];
  const { engine, directory } = await fleet.node({ events: { failed: (error) => failures.push(error) } });
  const survivor = await fleet.node();
  expect((await ask(engine, "/a/write", { method: "POST" })).status).toBe(200);
  const child = await identifyProcess((await engine.snapshot()).pid ?? 0);
  await lose(directory);
  await until("the node is not healthy", () => !engine.healthy());
  await engine.stop();
  expect(failures).toMatchObject([
    { code: "CELLKIT_ENGINE_DATA_DIRECTORY", message: expect.stringMatching(problem) },
  ]);
  expect(child && (await processFate(child))).toBe("gone");
  expect((await ask(survivor.engine, "/a/write", { method: "POST" })).status).toBe(200);
});

it("a node that waits for its first deployment notices, too", async () => {
  const failures: EngineError[] = [];
  const { engine, directory } = await fleet.node({ events: { failed: (error) => failures.push(error) } });
  expect(engine.healthy()).toBe(true);
  await rm(directory, { recursive: true, maxRetries: 5 });
  await until("the node is not healthy", () => !engine.healthy());
  expect(failures).toHaveLength(1);
});
