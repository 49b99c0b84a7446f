/** Judges histories with the Go program in `test/porcupine`. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { HistoryOperation } from "../../src/conformance/history.ts";

const run = promisify(execFile);
const GO_PLACES = ["/usr/local/go/bin", "/usr/lib/go/bin"];

/** The Go command; undefined if this machine has none. */
export function findGo(): string | undefined {
  const directories = [...(process.env["PATH"] ?? "").split(":"), ...GO_PLACES];
  return directories.map((directory) => join(directory, "go")).find((file) => existsSync(file));
}

/** Builds the program, with exactly the versions of its go.sum; answers its path. */
export async function buildPorcupine(go: string, directory: string): Promise<string> {
  const program = join(directory, "porcupine");
  const cwd = fileURLToPath(new URL("../porcupine/", import.meta.url));
  const env = { ...process.env, GOFLAGS: "-mod=readonly -buildvcs=false" };
  await run(go, ["build", "-o", program, "."], { cwd, env });
  return program;
}

/** The keys of the ids whose answers no ledger could have given. @throws when it cannot tell */
export async function judgeHistory(
  program: string,
  operations: readonly HistoryOperation[],
): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const child = execFile(program, { maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
    const isVerdict = error === null || error.code === 1;
    if (!isVerdict) reject(new TypeError(`the checker could not tell: ${stdout}${stderr}${error}`));
    else resolve([...stdout.matchAll(/^not linearizable: ([0-9a-z]+)$/gm)].map(([, key]) => String(key)));
  });
  child.stdin?.end(JSON.stringify(operations));
  return promise;
}
