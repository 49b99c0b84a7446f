// What is the controller's own, before a dispatcher in the place of the router: both answer a client alike.
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RouterClient } from "@cellkit/execution";
import {
  dispatcher,
  type ScriptedDispatcher,
  type TokenFile,
  testBackendToken,
  tokenFile,
  until,
} from "@cellkit/testing";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Controller, type ControllerOptions } from "../src/controller.ts";
import { primes } from "../src/request.ts";

/** How long each pause was to be that began in the test, in ms. */
const pauses = vi.hoisted((): (number | undefined)[] => []);
vi.mock(import("node:timers/promises"), async (original) => {
  const timers = await original();
  const setTimeout: typeof timers.setTimeout = (delayMs, ...rest) => {
    pauses.push(delayMs);
    return timers.setTimeout(delayMs, ...rest);
  };
  return { ...timers, setTimeout };
});

let directory: string;
let token: TokenFile;
let backend: ScriptedDispatcher;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cellkit-controller-test-"));
  token = await tokenFile(testBackendToken);
  backend = await dispatcher();
  pauses.length = 0;
});
afterEach(async () => {
  await backend.close();
  await token.close();
  await rm(directory, { recursive: true });
});

function controller(options: ControllerOptions = {}, submitTimeoutMs = 30_000): Controller {
  const client = new RouterClient({
    url: backend.origin,
    tokenFile: token.path,
    submitTimeoutMs,
    pollMinMs: 5,
  });
  return new Controller(client, directory, { retryMs: 5, ...options });
}

/** Work of one id with bytes of its own. */
const likewise = (name: string) => ({ ...primes("same", 1), workload: { id: name, caller: "tests" } });
const { id } = primes("same", 1);

it("who asks for one id at once gets one outcome, and the bytes that were first are kept", async () => {
  const one = controller();
  const outcomes = await Promise.all(["first", "second", "third"].map((name) => one.run(likewise(name))));
  expect(new Set(outcomes).size).toBe(1);
  expect(await one.run(likewise("fourth"))).toEqual(outcomes[0]);
  expect(backend.runs).toEqual(new Map([[id, 1]]));
  expect((await readdir(directory)).toSorted()).toEqual([`${id}.outcome`, `${id}.request`]);
});

it("nor do two controllers, by mistake over one directory, send different bytes for an id", async () => {
  const outcomes = await Promise.all(["first", "second"].map((name) => controller().run(likewise(name))));
  expect(outcomes.map(({ kind }) => kind)).toEqual(["done", "done"]);
  const submitted = backend.calls.filter(({ call }) => call === "submit").map(({ body }) => String(body));
  expect(new Set(submitted).size).toBe(1);
  expect(backend.runs).toEqual(new Map([[id, 1]]));
});

it("a bad file keeps no other work back, and is told", async () => {
  await writeFile(join(directory, `${id}.request`), JSON.stringify(likewise("begun")));
  await writeFile(join(directory, "bad.request"), '{"id":');
  const resumed = await controller().resume();
  expect(resumed.get(id)).toMatchObject({ kind: "done" });
  expect(resumed.get("bad")).toMatchObject({ kind: "failed", error: expect.any(Error) });
  expect(resumed.size).toBe(2);
});

it("a request that cannot be kept is not sent", async () => {
  const one = controller();
  await rm(directory, { recursive: true });
  await expect(one.run(likewise("first"))).rejects.toMatchObject({ code: "ENOENT" });
  expect(backend.calls).toHaveLength(0);
  // So that there is something to remove.
  directory = await mkdtemp(join(tmpdir(), "cellkit-controller-test-"));
});

it("whatever it waits for rejects with the signal's reason: a pause, and what comes after", async () => {
  const stop = new AbortController();
  const reason = new TypeError("stopped by the test");
  const minuteMs = 60_001;
  const one = controller({ retryMs: minuteMs, signal: stop.signal }, 100);
  backend.fault("submit", { kind: "answer", status: 503, body: outage }, { times: 1_000 });
  const paused = one.run(likewise("first")).catch((error: unknown) => error);
  // The client gives up for the moment after 100 ms; from there on it is the pause of a minute that has to end.
  await until("the pause", () => pauses.includes(minuteMs), { timeoutMs: 30_000 });
  expect(backend.calls.length).toBeGreaterThan(0);
  stop.abort(reason);
  expect(await paused).toBe(reason);
  await expect(one.resume()).rejects.toBe(reason);
});

/** What a router answers while its ledger is not to be had. */
const outage = { error: "ownership unavailable; retry same request without changing id" };
