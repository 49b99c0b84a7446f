// A container that is started again has a process namespace of its own, in which the processes of the one before are not to
// be seen. The lock on the data directory tells whether they are gone.
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { processFate } from "../src/process-identity.ts";
import { startFleet, type TestFleet } from "./support/fleet.ts";
import { ask, askJson } from "./support/http.ts";
import { makeLocalDirectory } from "./support/local-directory.ts";
import { canMakeNamespaces, startOwner } from "./support/owner-process.ts";
import { rooms } from "./support/workers.ts";

let fleet: TestFleet;
let directory: string | undefined;
let recordFile: string;

beforeEach(async () => {
  fleet = await startFleet();
  await fleet.deploy({ source: rooms, classes: ["Room"] });
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
});

/** A node in a container, and the engine of the container that comes after it on its data directory. */
async function containers() {
  const { bucketUrl, endpoint, credentials } = fleet;
  directory = await makeLocalDirectory();
  recordFile = join(directory, "engine.json");
  const { advertise, engine } = await fleet.node({ start: false, directory });
  const options = { bucketUrl, endpoint, credentials, directory, advertise };
  const owner = await startOwner(options, { namespace: true });
  return { owner, engine };
}

/** In CI nothing may be missing. */
const canRun = process.env["CI"] === "true" || canMakeNamespaces();
const whyNot = "process namespaces cannot be made here: run it as root, with util-linux";

describe("a container that is started again after kill -9", () => {
  it("proves its predecessor dead, so that a survivor serves its cells at once", async ({ skip }) => {
    skip(!canRun, whyNot);
    const survivor = await fleet.node();
    const { owner, engine } = await containers();
    await askJson(owner.engine, "/a/write");
    const record = JSON.parse(await readFile(recordFile, "utf8"));
    owner.process.kill("SIGKILL");
    await once(owner.process, "exit");
    // Without the lock nobody here could tell.
    expect([await processFate(record.owner), await processFate(record.child)]).toEqual([
      "unknown",
      "unknown",
    ]);
    const held = await fleet.bucket.get(owner.membership);
    const { expires_ms: expiresMs } = JSON.parse(Buffer.from(held?.body ?? []).toString());
    await engine.start();
    await until("the survivor serves", async () => {
      const answer = await ask(survivor.engine, "/a/write", { method: "POST" }).catch(() => undefined);
      return answer?.status === 200;
    });
    // 15 to 20 s after the kill.
    expect(Date.now()).toBeLessThan(expiresMs);
    const lease = await fleet.bucket.get(owner.membership);
    expect(JSON.parse(Buffer.from(lease?.body ?? "{}").toString()).expires_ms ?? 1).toBe(1);
  });

  it.runIf(inject("size") === "long")("is refused while its predecessor lives", async ({ skip }) => {
    skip(!canRun, whyNot);
    const { owner, engine } = await containers();
    await expect(engine.start()).rejects.toThrow(/is in use by another node, perhaps in another container/);
    expect((await ask(owner.engine, "/a/write", { method: "POST" })).status).toBe(200);
    owner.process.kill("SIGKILL");
    await once(owner.process, "exit");
  });
});
