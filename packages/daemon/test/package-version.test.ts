import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { packageVersion } from "../src/index.ts";

it("is that of the package.json one folder above the main module", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  expect(packageVersion(new URL("../src/main.ts", import.meta.url).href)).toBe(manifest.version);
});
