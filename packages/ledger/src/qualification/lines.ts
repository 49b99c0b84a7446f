/** Lines of a stream, bounded. */
import type { Readable } from "node:stream";
import { MAX_LINE_BYTES } from "./agent-protocol.ts";

/**
 * Hands on each line without its line break. A line that is too long ends the stream, with `onTooLong` told.
 */
export function onLines(stream: Readable, onLine: (line: string) => void, onTooLong: () => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
    if (rest.length <= MAX_LINE_BYTES) return;
    rest = "";
    stream.destroy();
    onTooLong();
  });
}

/** What a line says; undefined for one that is no JSON. */
export function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
