import { type FileFault, readBoundedFile } from "./bounded-file.ts";
import { maxTokenFileBytes, parseToken } from "./core/token.ts";

/** A token, or why there is none: the file cannot be opened, or what it holds is no token. */
export type TokenRead =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: FileFault | "invalid"; readonly problem: string; readonly cause?: unknown };

/**
 * The token in a file, read anew on each call so that a replaced file or a moved Kubernetes projection counts at once.
 * 24 to 4096 bytes, visible ASCII, white space at both ends is left out; a byte-order mark makes it invalid. Never throws,
 * and no problem tells anything of the content.
 */
export async function readTokenFile(path: string): Promise<TokenRead> {
  const file = await readBoundedFile(path, maxTokenFileBytes);
  if (file.kind !== "bytes") return file;
  const parsed = parseToken(file.bytes);
  return "token" in parsed
    ? { kind: "token", token: parsed.token }
    : { kind: "invalid", problem: parsed.problem };
}
