// Lines of a stream of text, each at most 64 KiB; a longer one is cut in pieces.
import type { Readable } from "node:stream";

const lineBytes = 64 * 1024;

/** Calls `onLine` for each line until the stream ends; resolves then, also when the stream failed. */
export function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  stream.setEncoding("utf8");
  let rest = "";
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > lineBytes) {
      lines.push(rest);
      rest = "";
    }
    for (const line of lines) if (line !== "") onLine(line);
  });
  return new Promise((resolve) => {
    stream.on("error", () => undefined);
    stream.once("close", () => {
      if (rest !== "") onLine(rest);
      resolve();
    });
  });
}
