// Every package README's code that claims to run is run, from inside its package, so that imports resolve as a reader's would.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runnableBlocks } from "../readme-blocks.ts";
import { packages } from "../workspace.ts";

/** How long one block may run. */
const BLOCK_MS = 150_000;

const blocks = packages().flatMap(({ folder, path }) => {
  const readme = join(path, "README.md");
  if (!existsSync(readme)) return [];
  return runnableBlocks(readFileSync(readme, "utf8")).map(({ line, code }) => ({
    name: `packages/${folder}/README.md:${line}`,
    folder: join(path, "test", ".cache"),
    file: join(path, "test", ".cache", `readme-${line}.ts`),
    code,
  }));
});

interface Outcome {
  code: number | string | null;
  output: string;
}

function run(file: string): Promise<Outcome> {
  const args = ["--conditions=@cellkit/source", "--disable-warning=ExperimentalWarning", file];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      args,
      { timeout: BLOCK_MS, killSignal: "SIGKILL" },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : (error.code ?? error.signal ?? null);
        resolve({ code, output: `${stdout}${stderr}`.slice(-4_000) });
      },
    );
  });
}

it("there are blocks to run", () => {
  expect(blocks.length).toBeGreaterThan(0);
});

describe("runs and ends by itself with 0", () => {
  it.each(blocks)("$name", async ({ folder, file, code }) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, code);
    try {
      const outcome = await run(file);
      expect(outcome.code, outcome.output).toBe(0);
    } finally {
      rmSync(file, { force: true });
    }
  });
});
