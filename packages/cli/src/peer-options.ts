// The options by which a command is told of a fleet's nodes and its key.
import { readSecretFile } from "@cellkit/daemon";
import { FleetKey, parseFleetKey } from "@cellkit/peer";
import { KeyFileError } from "./errors.ts";

/** A key object has under 100 bytes. */
const maxKeyFileBytes = 4_096;

/**
 * A fleet key from a file: the key object as it is in the bucket, or its 64 hex digits.
 * @throws KeyFileError (`CELLKIT_CLI_KEY_FILE`), also when the file cannot be read
 */
export async function readKeyFile(path: string): Promise<FleetKey> {
  const secret = await readSecretFile(path, { maxBytes: maxKeyFileBytes }).catch((cause: unknown) => {
    throw new KeyFileError(path, { reason: cause instanceof Error ? cause.message : String(cause), cause });
  });
  const text = secret.trim();
  if (/^[0-9a-f]{64}$/.test(text)) return new FleetKey(Buffer.from(text, "hex"));
  try {
    return parseFleetKey(text);
  } catch (cause) {
    throw new KeyFileError(path, { cause });
  }
}
