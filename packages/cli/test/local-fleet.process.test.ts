// `startLocalFleet` as a library.
import { join } from "node:path";
import { readCurrent } from "@cellkit/deployment";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { type LocalFleet, startLocalFleet } from "../src/index.ts";
import { run } from "./support/command.ts";
import { processesOf } from "./support/processes.ts";
import { TemporaryDirectory, worker } from "./support/project.ts";

const boundMs = 300_000;
let directory: TemporaryDirectory;
let project: string;
let fleet: LocalFleet;
const ended: string[] = [];
const progress: string[] = [];

beforeAll(async () => {
  directory = await TemporaryDirectory.make();
  project = await directory.project("project", "one");
  // Whoever starts a fleet may be signed in to AWS: nothing of that reaches the nodes.
  vi.stubEnv("AWS_PROFILE", "someone");
  vi.stubEnv("AWS_SESSION_TOKEN", "a-token");
  fleet = await startLocalFleet({
    directory: join(directory.path, "fleet"),
    onProgress: (line) => progress.push(line),
    onEnded: (process, reason) => ended.push(`${process} ${reason}`),
  });
}, boundMs);
afterAll(async () => {
  vi.unstubAllEnvs();
  await fleet.kill();
  await directory.remove();
}, boundMs);

const node = () => fleet.nodes[0] as (typeof fleet.nodes)[0] & object;
const ask = async (path = "/") => {
  const answer = await fetch(`${node().publicUrl}${path}`);
  return `${answer.status} ${await answer.text()}`;
};

it(
  "a fleet without a project is healthy and answers 404 until something is deployed, which it then serves",
  async () => {
    expect(await ask()).toBe('404 {"error":"not_found"}');
    const { scriptName, version, created, warnings } = await fleet.deploy(project);
    expect({ scriptName, created, warnings }).toEqual({ scriptName: "counter", created: true, warnings: [] });
    await until("the deployment", async () => (await ask()) === "200 one");
    const bucket = fleet.openBucket();
    expect(await readCurrent(bucket)).toEqual({ scriptName, version });
    await bucket.close();
    expect(await ask("/count")).toBe("200 1");
  },
  boundMs,
);

it(
  "`cellkit deploy` finds its bucket by its environment, and a restart adopts the deployment",
  async () => {
    await directory.write("project/src/worker.js", worker("two"));
    const { code, stdout } = await run(["deploy", project], { ...fleet.bucketEnvironment });
    expect({ code, stdout }).toEqual({ code: 0, stdout: [expect.stringMatching(/^counter /)] });
    const before = node().process;
    await fleet.restart(node(), { end: "kill" });
    expect(before.process.exit).toEqual({ code: null, signal: "SIGKILL" });
    expect(await ask()).toBe("200 two");
    expect(await ask("/count")).toBe("200 2");
    expect(ended).toEqual([]);
  },
  boundMs,
);

it(
  "it hears of a process that ended unasked, and starts another in its place",
  async () => {
    await node().process.kill();
    await until("the end", () => ended.length > 0);
    expect(ended).toEqual(["node-1 SIGKILL"]);
    await fleet.restart(node());
    expect(await ask("/count")).toBe("200 3");
  },
  boundMs,
);

it(
  "a restart that is called off leaves no process behind",
  async () => {
    const reason = new DOMException("enough", "AbortError");
    const controller = new AbortController();
    const restarting = fleet.restart(node(), { end: "kill", signal: controller.signal });
    controller.abort(reason);
    await expect(restarting).rejects.toBe(reason);
    expect(node().process.process.exit).toBeDefined();
    await fleet.restart(node());
  },
  boundMs,
);

it(
  "its close drains the nodes, is the same promise each time, and no work starts after it",
  async () => {
    const closing = fleet.close();
    expect(fleet.close()).toBe(closing);
    await expect(fleet.restart(node())).rejects.toMatchObject({ code: "CELLKIT_CLI_LOCAL_FLEET" });
    await expect(fleet.deploy(project)).rejects.toMatchObject({ code: "CELLKIT_CLI_LOCAL_FLEET" });
    await closing;
    expect(node().process.process.exit).toEqual({ code: 0, signal: null });
    expect(progress.at(-1)).toBe("node-1 drains");
    await until("end of every process", async () => (await processesOf(directory.path)).length === 0);
  },
  boundMs,
);

it.each([0, 65, 1.5])("nodeCount %d is refused before anything starts", async (nodeCount) => {
  await expect(startLocalFleet({ directory: "/nonexistent", nodeCount })).rejects.toMatchObject({
    code: "CELLKIT_CLI_LOCAL_FLEET",
  });
});

it("a directory without a project is refused before anything starts", async () => {
  await expect(startLocalFleet({ directory: "/nonexistent", project: directory.path })).rejects.toMatchObject(
    { code: "CELLKIT_CLI_PROJECT" },
  );
});

it(
  "a start that fails, or is called off, rejects with the reason and leaves nothing running",
  async () => {
    const broken = await directory.project("broken", "one");
    await directory.write("broken/src/worker.js", `${worker("one")}throw new TypeError("no price list");\n`);
    const data = join(directory.path, "failed");
    await expect(startLocalFleet({ directory: data, project: broken })).rejects.toMatchObject({
      code: "CELLKIT_CLI_PROCESS_START",
      process: "node-1",
      message: expect.stringContaining("no price list"),
    });
    await until("end of every process", async () => (await processesOf(data)).length === 0);

    const reason = new DOMException("enough", "AbortError");
    const controller = new AbortController();
    const starting = startLocalFleet({
      directory: data,
      signal: controller.signal,
      onProgress: (line) => line === "node-1 starts" && controller.abort(reason),
    });
    await expect(starting).rejects.toBe(reason);
    await until("end of every process", async () => (await processesOf(data)).length === 0);
  },
  boundMs,
);
