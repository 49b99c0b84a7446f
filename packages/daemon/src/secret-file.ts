import { SecretFileError } from "./errors.ts";
import { readPlainFile } from "./plain-file.ts";

/** Options of {@link readSecretFile}. */
export interface ReadSecretFileOptions {
  /** The longest content that is accepted, in bytes. Default 65 536: no key or token is longer. */
  maxBytes?: number;
  /** Refuse a file that its group or others may read. Kubernetes mounts secrets readable, so the default is false. */
  ownerOnly?: boolean;
}

/**
 * The secret in a file, without its last line break. It is read anew on each call: a rotated Kubernetes projection is
 * seen on the next use, nothing is kept.
 *
 * @throws {@link SecretFileError} (`CELLKIT_DAEMON_SECRET_FILE`) when the file is absent, unreadable, not a plain file,
 * empty, too long, not UTF-8, or open to others where `ownerOnly` asks. The message names the path, never the content.
 */
export async function readSecretFile(path: string, options: ReadSecretFileOptions = {}): Promise<string> {
  const { maxBytes = 65_536, ownerOnly = false } = options;
  let bytes: Buffer;
  try {
    bytes = await readBounded(path, maxBytes, ownerOnly);
  } catch (error) {
    if (error instanceof SecretFileError) throw error;
    throw new SecretFileError(path, reasonOf(error as NodeJS.ErrnoException), { cause: error });
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // The cause is not kept: it may quote the content.
    throw new SecretFileError(path, "is not UTF-8 text; write it again as text");
  }
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "") throw new SecretFileError(path, "is empty; write the secret into it");
  return secret;
}

async function readBounded(path: string, maxBytes: number, ownerOnly: boolean): Promise<Buffer> {
  const found = await readPlainFile(path, maxBytes, ({ mode }) => {
    if (ownerOnly && (mode & 0o077) !== 0)
      throw new SecretFileError(path, `others may read it; run chmod 600 ${path}`);
  });
  if (found === "not-plain")
    throw new SecretFileError(path, "is not a plain file; name the file, not its directory");
  if (found === "too-long")
    throw new SecretFileError(path, `is longer than ${maxBytes} bytes; is it the right file?`);
  return found;
}

function reasonOf({ code }: NodeJS.ErrnoException): string {
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return "does not exist; create it or correct the path";
    case "EACCES":
    case "EPERM":
      return "may not be read by this user; change its owner or mode";
    default:
      return `cannot be read (${code ?? "no reason was given"})`;
  }
}
