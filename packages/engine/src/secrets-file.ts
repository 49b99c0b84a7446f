// The Worker's secrets come from a file on the node and never from the bucket or a command line.
import { open } from "node:fs/promises";
import { parseSecrets } from "./core/secrets.ts";
import { SecretsFileError } from "./errors.ts";

const largestBytes = 1024 * 1024;

/**
 * Reads a secrets file: JSON or KEY=VALUE lines, at most 1 MiB, readable by its owner (and group) only.
 *
 * @throws SecretsFileError (CELLKIT_ENGINE_SECRETS_FILE)
 */
export async function readSecrets(path: string): Promise<Readonly<Record<string, string>>> {
  const file = await open(path, "r").catch((cause: unknown) => {
    throw new SecretsFileError(`the secrets file ${path} cannot be opened: ${messageOf(cause)}`, { cause });
  });
  try {
    const { size, mode } = await file.stat();
    if (size > largestBytes)
      throw new SecretsFileError(`the secrets file ${path} is larger than ${largestBytes} bytes`);
    if ((mode & 0o007) !== 0) {
      throw new SecretsFileError(`the secrets file ${path} is open to everybody: chmod 600 ${path}`);
    }
    const parsed = parseSecrets(await file.readFile("utf8"));
    if ("problem" in parsed)
      throw new SecretsFileError(`the secrets file ${path} cannot be used: ${parsed.problem}`);
    return parsed.secrets;
  } finally {
    await file.close();
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
