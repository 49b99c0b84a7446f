// Reading files that somebody else names: a pipe without a writer is not waited for, and what has no end is not read to it.
import { constants, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** Why a file was not read. */
export type PlainFileProblem = "not-plain" | "too-long";

/**
 * All bytes of a plain file. Its size is not believed: it may grow while it is read.
 * @param check sees the file's state before it is read; what it throws is passed on
 * @throws what the system says of the path
 */
export async function readPlainFile(
  path: string,
  maxBytes: number,
  check?: (stats: Stats) => void,
): Promise<Buffer | PlainFileProblem> {
  // O_NONBLOCK: opening a FIFO that nobody writes to would block for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return "not-plain";
    check?.(stats);
    const chunks: Buffer[] = [];
    let length = 0;
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(16_384), 0, 16_384);
      if (bytesRead === 0) return Buffer.concat(chunks, length);
      chunks.push(buffer.subarray(0, bytesRead));
      length += bytesRead;
      if (length > maxBytes) return "too-long";
    }
  } finally {
    await file.close();
  }
}
