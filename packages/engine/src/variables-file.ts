// The Worker's secrets and what overrides its vars come from files on the node, and never from the bucket or a command line.
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { parseVariables } from "./core/variables.ts";
import { SecretsFileError, VarsFileError } from "./errors.ts";

const largestBytes = 1024 * 1024;

/**
 * Reads a file of secrets: JSON or KEY=VALUE lines, at most 1 MiB, readable by its owner (and group) only.
 *
 * @throws SecretsFileError (CELLKIT_ENGINE_SECRETS_FILE)
 */
export function readSecrets(path: string): Promise<Readonly<Record<string, string>>> {
  return readVariables(path, {
    isSecret: true,
    fail: (problem, options) => new SecretsFileError(`the secrets file ${path} ${problem}`, options),
  });
}

/**
 * Reads a file of vars, which anybody may read: JSON or KEY=VALUE lines, at most 1 MiB.
 *
 * @throws VarsFileError (CELLKIT_ENGINE_VARS_FILE)
 */
export function readVars(path: string): Promise<Readonly<Record<string, string>>> {
  return readVariables(path, {
    isSecret: false,
    fail: (problem, options) => new VarsFileError(`the vars file ${path} ${problem}`, options),
  });
}

async function readVariables(
  path: string,
  { isSecret, fail }: { isSecret: boolean; fail: (problem: string, options?: ErrorOptions) => Error },
): Promise<Readonly<Record<string, string>>> {
  // O_NONBLOCK: a FIFO that nobody writes to would block for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: unknown) => {
    throw fail(`cannot be opened: ${messageOf(cause)}`, { cause });
  });
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw fail("is no regular file");
    if (stats.size > largestBytes) throw fail(`is larger than ${largestBytes} bytes`);
    if (isSecret && (stats.mode & 0o007) !== 0) throw fail(`is open to everybody: chmod 600 ${path}`);
    const parsed = parseVariables(await file.readFile("utf8"));
    if ("problem" in parsed) throw fail(`cannot be used: ${parsed.problem}`);
    return parsed.variables;
  } finally {
    await file.close();
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
