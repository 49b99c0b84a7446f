// What a router loads when it starts. The client's HTTP client is none of it, though they share what they know of the wire.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

/** Loads a module in a process of its own, and prints the address of everything that was loaded. */
const program = `
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      console.log(url);
      return next(url, context);
    },
  });
  await import(process.argv[1]);
`;

const directory = fileURLToPath(new URL("..", import.meta.url));

async function modulesOf(module: string, ...rest: string[]): Promise<string[]> {
  const flags = ["--conditions=@cellkit/source", "--input-type=module", "--eval", program];
  const options = { cwd: directory };
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, module, ...rest], options);
  return stdout.split("\n").filter((line) => line.startsWith("file:"));
}

const isUndici = (url: string) => url.includes("/node_modules/undici/");

it("the client loads undici, so that this test would see it", async () => {
  expect((await modulesOf("@cellkit/execution")).some(isUndici)).toBe(true);
});

it.each(["./src/index.ts", "./src/main.ts"])("%s loads the contract and no HTTP client", async (module) => {
  const loaded = await modulesOf(module, "--help");
  expect(loaded).toContainEqual(expect.stringMatching(/\/execution\/src\/contract\.ts$/));
  expect(loaded.filter(isUndici)).toEqual([]);
});
