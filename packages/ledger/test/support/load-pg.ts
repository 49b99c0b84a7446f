/**
 * Lets pg load in a test: import this before anything that imports pg. Vitest starts node with `--conditions=import`, under which pg's
 * own `require("pg-pool")` finds the ESM build and cannot use it. Here the CommonJS build is put in its place.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const requireHere = createRequire(import.meta.url);
const requireInPg = createRequire(requireHere.resolve("pg/package.json"));
const found = requireInPg.resolve("pg-pool");
if (found.endsWith(".mjs")) {
  const wanted = join(dirname(dirname(found)), "index.js");
  requireInPg(wanted);
  requireInPg.cache[found] = requireInPg.cache[wanted];
}
