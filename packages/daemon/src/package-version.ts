import { readFileSync } from "node:fs";
import { z } from "zod";

/**
 * The version of the package that a program's main module belongs to: that of the `package.json` one folder above it,
 * which holds for `src/main.ts` as for `dist/main.js`.
 * @param moduleUrl `import.meta.url` of the main module
 */
export function packageVersion(moduleUrl: string): string {
  const text = readFileSync(new URL("../package.json", moduleUrl), "utf8");
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}
