import { expect, it } from "vitest";
import { mayImport } from "../../src/core/node-compat.ts";

// Each row was seen in workerd 1.20261117.1: the module was there, or "No such module" at load.
it.each([
  ["node:fs", "2026-11-01", [], true],
  ["node:fs", "2026-08-04", [], true],
  ["node:fs", "2026-08-03", [], false],
  ["node:fs", "2026-08-03", ["nodejs_compat"], true],
  ["node:fs", "2026-11-01", ["no_nodejs_compat"], false],
  ["node:fs", "2026-11-01", ["no_nodejs_compat", "nodejs_compat_v2"], false],
  ["node:util", "2024-01-01", ["nodejs_compat"], true],
  ["node:util", "2024-01-01", ["nodejs_compat_v2"], true],
  ["node:async_hooks", "2026-08-03", [], false],
  ["node:async_hooks", "2026-08-03", ["nodejs_als"], true],
  ["node:async_hooks", "2026-11-01", ["no_nodejs_compat"], true],
  ["node:async_hooks", "2026-08-04", ["no_nodejs_als", "no_nodejs_compat"], true],
] as const)("%s at %s with %j is there: %s", (name, compatibility_date, compatibility_flags, there) => {
  expect(mayImport(name, { compatibility_date, compatibility_flags })).toBe(there);
});
