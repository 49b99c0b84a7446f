import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("fixtures/leave.ts", import.meta.url));

/** Runs the scenario; answers what it printed, when it ended by itself within the time. */
async function run(scenario: string): Promise<string> {
  const child = spawn(process.execPath, ["--conditions=@cellkit/source", script, scenario], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 45_000,
  });
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...ended) => resolve(ended));
  });
  return `${printed.trim()}, exit ${code ?? signal}`;
}

describe("a process with a fleet", () => {
  it.each([
    ["H60 ends after close()", "closed", "200 x, exit 0"],
    ["H01 ends without close(), once its server lets the idle connection go", "open", "200 x, exit 0"],
    ["H33 ends after an abort in a backoff", "backoff", "TimeoutError, exit 0"],
    ["ends while a drained node is still set aside", "drained", '503 {"ok":false,"draining":true}, exit 0'],
  ])("%s", async (_name, scenario, expected) => {
    expect(await run(scenario)).toBe(expected);
  });
});
