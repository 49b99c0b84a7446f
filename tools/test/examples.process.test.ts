// Every example that can be started ends by itself and shows what it says. The demo is left out: CI runs it by its own name.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../workspace.ts";

/** How long an example may take. */
const EXAMPLE_MS = 240_000;
const ranElsewhere = ["demo"];

const examples = readdirSync(join(root, "examples"))
  .map((folder) => ({ folder, path: join(root, "examples", folder) }))
  .filter(({ folder, path }) => !ranElsewhere.includes(folder) && startOf(path) !== undefined);

/** The `start` script of a package, which begins with `node`. */
function startOf(path: string): string | undefined {
  const file = join(path, "package.json");
  if (!existsSync(file)) return undefined;
  return (JSON.parse(readFileSync(file, "utf8")) as { scripts?: { start?: string } }).scripts?.start;
}

interface Outcome {
  code: number | string | null;
  output: string;
}

function start(path: string): Promise<Outcome> {
  const [command, ...args] = startOf(path)?.split(" ") ?? [];
  return new Promise((resolve, reject) => {
    if (command !== "node") {
      reject(
        new TypeError(
          `the start script of ${path} must begin with "node", so that it runs on the pinned one`,
        ),
      );
      return;
    }
    const options = { cwd: path, timeout: EXAMPLE_MS, killSignal: "SIGKILL" } as const;
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : (error.code ?? error.signal ?? null);
      resolve({ code, output: `${stdout}${stderr}`.slice(-4_000) });
    });
  });
}

it("there are examples to run", () => {
  expect(examples.map(({ folder }) => folder)).toContain("chat");
});

it.each(examples)(
  "$folder ends by itself with 0 and prints what it showed",
  async ({ path }) => {
    const { code, output } = await start(path);
    expect(code, output).toBe(0);
    expect(output.trim()).not.toBe("");
  },
  EXAMPLE_MS + 10_000,
);
