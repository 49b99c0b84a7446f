import { spawn } from "node:child_process";

/** Runs a command with its output passed on, and answers its exit code (1 for a signal). */
export function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
) {
  return new Promise<number>((resolve, reject) => {
    const child = spawn(command, args, { stdio: "inherit", ...options });
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

/** Runs named steps one after another, all of them, and exits 1 with the list of those that failed. */
export async function runSteps(
  steps: ReadonlyArray<readonly [name: string, run: () => Promise<number>]>,
): Promise<void> {
  const failed: string[] = [];
  for (const [name, step] of steps) {
    const startMs = performance.now();
    console.log(`\n== ${name}`);
    const code = await step();
    console.log(
      `== ${name}: ${code === 0 ? "ok" : `failed (exit ${code})`}, ${((performance.now() - startMs) / 1000).toFixed(1)} s`,
    );
    if (code !== 0) failed.push(name);
  }
  if (failed.length > 0) {
    console.error(`\nfailed: ${failed.join(", ")}`);
    process.exit(1);
  }
}
