import { expect, it } from "vitest";
import { openFileLimit, openFilesProblem, parseOpenFileLimit } from "../src/open-files.ts";

const head = "Limit                     Soft Limit           Hard Limit           Units     \n";

it.each([
  [`${head}Max open files            256                  4096                 files     \n`, 256],
  [`${head}Max open files            unlimited            unlimited            files     \n`, undefined],
  ["", undefined],
])("of %j the soft limit of open files is read", (text, limit) => {
  expect(parseOpenFileLimit(text)).toBe(limit);
});

it("connections that the process may not have open are told of", () => {
  expect(openFilesProblem(256, 16_384)).toMatch(
    /may have 256 files open, fewer than --max-connections 16384/,
  );
  expect(openFilesProblem(3_000, 1_000)).toMatch(/raise the limit/);
  expect(openFilesProblem(65_536, 16_384)).toBeUndefined();
  expect(openFilesProblem(undefined, 16_384)).toBeUndefined();
});

it.runIf(process.platform === "linux")("this system tells a limit", async () => {
  expect((await openFileLimit()) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(10);
});
