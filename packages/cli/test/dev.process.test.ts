// `cellkit dev` with real fleets: a project that changes, fails, and comes back; and every way in which the command ends.
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createFetch, Fleet } from "@cellkit/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { freePorts } from "../src/free-ports.ts";
import { Command, run } from "./support/command.ts";
import { processesOf } from "./support/processes.ts";
import { TemporaryDirectory, worker } from "./support/project.ts";

/** A fleet starts and stops in some seconds; a loaded machine takes its time. */
const boundMs = 300_000;

let directory: TemporaryDirectory;
let project: string;
const running: Command[] = [];

beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  project = await directory.project("project", "one");
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((command) => command.process.kill()));
  await until("end of every process", async () => (await processesOf(directory.path)).length === 0);
  await directory.remove();
});

/** Starts `cellkit dev` on the project. */
function dev(...flags: string[]): Command {
  const command = new Command(["dev", project, "--port", "0", ...flags]);
  running.push(command);
  return command;
}

const save = (source: string) => directory.replace("project/src/worker.js", source);

async function ask(url: string): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) });
  return await answer.text();
}

/** Waits until a node answers with this text; a node that restarts does not answer for a moment. */
const serves = (url: string, text: string) =>
  until(
    `answer ${text} of ${url}`,
    () =>
      ask(url).then(
        (answer) => answer === text,
        () => false,
      ),
    60_000,
  );

it(
  "serves the project, adopts what changes, and goes on with the version before when a change is bad",
  async () => {
    const [port = 0] = await freePorts(1);
    const command = new Command(["dev", project, "--port", String(port)]);
    running.push(command);
    const [url = ""] = await command.printed(1);
    expect(url).toBe(`http://127.0.0.1:${port}`);
    await command.said("ready; stop with Ctrl-C");
    expect(await ask(url)).toBe("one");
    expect(await ask(`${url}/count`)).toBe("1");

    await save(worker("two"));
    await serves(url, "two");
    expect(await ask(`${url}/count`)).toBe("2");
    await command.said(/^counter [0-9a-f]{16} runs$/);

    await save("export default {\n  fetch() { return new Response( };\n};\n");
    expect(await command.said("changed, but the version before goes on")).toMatch(
      /^src\/worker\.js changed, .* cannot be bundled: src\/worker\.js:2:34 Unexpected "}"$/,
    );
    expect(await ask(url)).toBe("two");

    await save(`${worker("three")}throw new TypeError("the price list is missing");\n`);
    await command.said(/^node-1 did not start: the Worker counter did not load: .*the price list is missing/);
    await command.said("the version before is put back");
    await serves(url, "two");

    const from = command.stderr.length;
    await save(worker("two"));
    await command.said(/^src\/worker\.js changed: counter [0-9a-f]{16} runs already$/, { from });

    command.process.signal("SIGINT");
    expect((await command.outcome()).code).toBe(0);
    expect(command.stdout).toEqual([url]);
    await until("end of every process", async () => (await processesOf(directory.path)).length === 0);

    const again = dev("--no-watch");
    const [next = ""] = await again.printed(1);
    expect(await ask(`${next}/count`)).toBe("3");
    again.process.signal("SIGKILL");
    await again.process.exited;
    await until("end of every process", async () => (await processesOf(directory.path)).length === 0);
  },
  boundMs,
);

it(
  "rolls two nodes so that a client of both fails no call, and starts a node again that died",
  async () => {
    const command = dev("--nodes", "2");
    const urls = await command.printed(2);
    const fleet = new Fleet({ authority: "http://counter.internal", endpoints: urls });
    const call = createFetch(fleet);
    const calls = { count: 0, failures: [] as string[], isOver: false };
    const client = async () => {
      while (!calls.isOver) {
        calls.count += 1;
        const answer = await call("/count", { method: "POST" }).catch((error: Error) => error);
        if (answer instanceof Error) calls.failures.push(String(answer.cause ?? answer));
        else if (answer.status !== 200) calls.failures.push(`${answer.status} ${await answer.text()}`);
        else await answer.text();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const clients = [client(), client()];
    await until("calls", () => calls.count > 20);
    await save(worker("two"));
    await command.said(/^counter [0-9a-f]{16} runs$/);
    const during = calls.count;
    await until("calls after the roll", () => calls.count > during + 20);
    calls.isOver = true;
    await Promise.all(clients);
    await fleet.close();
    expect(calls.failures).toEqual([]);
    for (const url of urls) expect(await ask(url)).toBe("two");
    expect(command.stderr.filter((line) => line.endsWith(" drains"))).toEqual([
      "node-1 drains",
      "node-2 drains",
    ]);

    const from = command.stderr.length;
    process.kill(await pidOf("node-2"), "SIGKILL");
    await command.said("node-2 ended (SIGKILL); it is started again", { from });
    await command.said(/^node-2 serves /, { from });
    expect(await ask(urls[1] ?? "")).toBe("two");

    process.kill(await pidOf("bucket serve"), "SIGKILL");
    expect((await command.outcome()).code).toBe(1);
    expect(command.stderr.at(-1)).toBe("cellkit dev: bucket ended: SIGKILL; start this command again");
  },
  boundMs,
);

/** The process id of a process of the fleet: celld's has the node's data directory in its environment. */
async function pidOf(what: string): Promise<number> {
  const found = await processesOf(
    what === "bucket serve" ? join(project, ".cellkit") : join(project, ".cellkit", what),
  );
  const main = what === "bucket serve" ? "bucket serve" : "celld/src/main.ts";
  const line = found.find((each) => each.includes(main) && !each.includes("/bin/sh"));
  return Number(line?.split(" ")[0]);
}

describe("ends with one line and leaves nothing running", () => {
  it(
    "when another server has the port, even one that calls itself healthy: code 1",
    async () => {
      const [port = 0] = await freePorts(1);
      const other = createServer((_, response) => response.end("{}")).listen(port, "127.0.0.1");
      await once(other, "listening");
      const { code, stdout, stderr } = await run(["dev", project, "--port", String(port)]);
      other.close();
      expect(stderr.at(-1)).toMatch(
        /^cellkit dev: node-1 did not start: cannot listen on 127\.0\.0\.1:\d+.* choose another port$/,
      );
      expect({ code, stdout }).toEqual({ code: 1, stdout: [] });
    },
    boundMs,
  );

  it("without a Wrangler project: code 2", async () => {
    await rm(join(project, "wrangler.jsonc"));
    expect(await run(["dev", project])).toEqual({
      code: 2,
      stdout: [],
      stderr: [
        expect.stringMatching(
          /^cellkit dev: .* has no wrangler\.jsonc or wrangler\.json: name the directory/,
        ),
      ],
    });
  });

  it(
    "when the Worker throws at load: code 1, with its own text",
    async () => {
      await save(`${worker("one")}throw new TypeError("the price list is missing");\n`);
      const { code, stderr } = await run(["dev", project, "--port", "0"]);
      expect(stderr.join("\n")).toMatch(
        /\ncellkit dev: node-1 did not start: the Worker counter did not load: .*the price list is missing/,
      );
      expect(code).toBe(1);
    },
    boundMs,
  );

  it(
    "when it is told to stop while it starts: code 0",
    async () => {
      const command = dev();
      await command.said("node-1 starts");
      command.process.signal("SIGTERM");
      expect((await command.outcome()).code).toBe(0);
      await until("end of every process", async () => (await processesOf(directory.path)).length === 0);
    },
    boundMs,
  );
});
