// What the list of commands costs: names and summaries, and none of what the commands themselves need.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** Runs the command in a process that prints the address of everything it loads. */
const program = `
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      console.log(url);
      return next(url, context);
    },
  });
  await import("./src/main.ts");
`;

async function modulesOf(...args: string[]): Promise<string[]> {
  const flags = ["--conditions=@cellkit/source", "--input-type=module", "--eval", program];
  const options = { cwd: fileURLToPath(new URL("..", import.meta.url)) };
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, "main.ts", ...args], options);
  return stdout.split("\n").filter((line) => line.startsWith("file:"));
}

const isCommand = (url: string) => url.includes("/cli/src/commands/");
const ofOthers = /\/packages\/(?!cli\/|daemon\/)|\/node_modules\/(?:undici|pg|ws|@aws-sdk|@smithy)\//;

it("the list of commands loads no command and nothing that one needs; a command's help loads that one", async () => {
  const [list, one] = await Promise.all([modulesOf("--help"), modulesOf("router", "check", "--help")]);
  expect(list.filter((url) => isCommand(url) || ofOthers.test(url))).toEqual([]);
  expect(one.filter(isCommand)).toEqual([expect.stringMatching(/\/router-check\.ts$/)]);
  expect(one.some((url) => ofOthers.test(url))).toBe(true);
});
