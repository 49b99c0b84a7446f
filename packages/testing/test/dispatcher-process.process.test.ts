import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { dispatcherProcess, ProcessError, ranAtMostOnce, TestingOptionError, until } from "../src/index.ts";
import { failureOf, read, submit } from "./support/call.ts";
import { directory, tokenFile } from "./support/directory.ts";

it("a killed process leaves behind what ran, and the next one does not run it again", async () => {
  await using it = await dispatcherProcess({ journal: await directory(), run: "hold" });
  await submit(it.origin, "done");
  await it.finish("done");
  await until("its end", async () =>
    JSON.stringify((await read(it.origin, "done")).body).includes("Succeeded"),
  );
  await submit(it.origin, "running");
  await it.kill();
  expect((await read(it.origin, "done")).status).toBeUndefined();
  const { origin } = it;
  await it.restart();
  expect(it.origin).toBe(origin);
  expect(await submit(it.origin, "done")).toMatchObject({ status: 200, body: { phase: "Succeeded" } });
  expect(await submit(it.origin, "running")).toMatchObject({ status: 503 });
  expect(ranAtMostOnce(await it.runs())).toEqual(
    new Map([
      ["done", 1],
      ["running", 1],
    ]),
  );
  await it.restart({ journal: "lost" });
  expect((await read(it.origin, "done")).status).toBe(404);
});

it("it dies of a fault as of SIGKILL, follows a token file, and tells its calls", async () => {
  const file = await tokenFile("another-backend-token-for-tests");
  await using it = await dispatcherProcess({ journal: await directory(), tokenFile: file });
  expect((await submit(it.origin, "a")).status).toBe(401);
  await it.change({ maxCells: 0 });
  await it.fault("submit", { kind: "die", when: "after-accept" });
  expect((await it.calls()).map(({ call, status }) => [call, status])).toEqual([["submit", 401]]);
  await it.refuse();
  expect((await submit(it.origin, "a")).status).toBeUndefined();
  await it.heal();
  expect(await failureOf(it.fault("read", { kind: "at-capacity" }))).toBeInstanceOf(TestingOptionError);
  await it.fault("submit", { kind: "die", when: "before-accept" });
  expect((await submit(it.origin, "a")).status).toBeUndefined();
  await it.exited();
  expect(it.alive).toBe(false);
  expect((await it.runs()).size).toBe(0);
  expect(await failureOf(it.calls())).toBeInstanceOf(ProcessError);
});

it("its starts are a promise, and what wants a map says so", async () => {
  await using it = await dispatcherProcess({ journal: await directory() });
  await submit(it.origin, "a");
  expect(() => ranAtMostOnce(it as never)).toThrow("give ranAtMostOnce(await it.runs())");
  expect(ranAtMostOnce(await it.runs())).toEqual(new Map([["a", 1]]));
  const run = (() => ({ kind: "succeeded" })) as never;
  const error = await failureOf(dispatcherProcess({ journal: await directory(), run }));
  expect(error).toBeInstanceOf(TestingOptionError);
});

it("one that cannot start says why", async () => {
  const error = await failureOf(dispatcherProcess({ journal: await directory(), token: "short" }));
  expect(error).toBeInstanceOf(ProcessError);
  expect(String(error)).toContain("fewer than 24");
});

it("it ends with the process that started it, however that ends", async () => {
  const main = fileURLToPath(new URL("./fixtures/starts-a-dispatcher.ts", import.meta.url));
  const parent = spawn(process.execPath, ["--conditions=@cellkit/source", main, await directory()], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const stat = `/proc/${line.toString().trim()}/stat`;
  expect(existsSync(stat)).toBe(true);
  parent.kill("SIGKILL");
  // In a container nobody may fetch what an orphan ended with: it stays in the table as a zombie.
  const isGone = () => {
    try {
      return / [ZX] /.test(readFileSync(stat, "latin1"));
    } catch {
      return true;
    }
  };
  await until("its end", isGone, { timeoutMs: 60_000 });
});

it("one whose process cannot be spawned says why", async () => {
  const journal = await directory();
  const { execPath } = process;
  onTestFinished(() => {
    process.execPath = execPath;
  });
  process.execPath = "/nowhere/node";
  const error = await failureOf(dispatcherProcess({ journal }));
  expect(error).toBeInstanceOf(ProcessError);
  expect(String(error)).toContain("did not start: spawn /nowhere/node ENOENT");
});
