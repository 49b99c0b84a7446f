// Reading small files that others replace: opened anew each time, never waiting for a pipe, never more than the bound.
import { constants, open } from "node:fs/promises";

/** Why a file gave nothing: it cannot be opened, or what was opened cannot be read. */
export type FileFault = "unavailable" | "unreadable";

export type BoundedFile =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: FileFault; readonly problem: string; readonly cause?: unknown };

/** The first `maxBytes + 1` bytes of a plain file: one more than allowed, so that a longer one shows. Never throws. */
export async function readBoundedFile(path: string, maxBytes: number): Promise<BoundedFile> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    return { kind: "unavailable", problem: `cannot be opened (${codeOf(cause)})`, cause };
  }
  try {
    if (!(await file.stat()).isFile()) return { kind: "unreadable", problem: "is no plain file" };
    const buffer = Buffer.alloc(maxBytes + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return { kind: "bytes", bytes: buffer.subarray(0, length) };
  } catch (cause) {
    return { kind: "unreadable", problem: `cannot be read (${codeOf(cause)})`, cause };
  } finally {
    // Nothing was written, so a file that cannot be closed changes nothing of what was read.
    await file.close().catch(() => undefined);
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown reason";
}
