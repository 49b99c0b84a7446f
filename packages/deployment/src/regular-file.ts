/** Only regular files are read: to open a FIFO may wait for ever, and a device has no end. */
import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { relative } from "node:path";
import type { Plugin } from "esbuild";

/** Why something at a path cannot be read as a file, or undefined when it can. */
export function notAFile(path: string, stats: Stats): string | undefined {
  return stats.isFile() ? undefined : `${path} is ${kindOf(stats)}: only regular files are read`;
}

/** Keeps esbuild from opening what is no regular file. */
export function regularFiles(directory: string): Plugin {
  return {
    name: "regular-files",
    setup(build) {
      build.onLoad({ filter: /.*/, namespace: "file" }, async ({ path }) => {
        const text = notAFile(relative(directory, path), await stat(path));
        return text === undefined ? undefined : { errors: [{ text }] };
      });
    },
  };
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isSocket()) return "a socket";
  return stats.isDirectory() ? "a directory" : "a device";
}
