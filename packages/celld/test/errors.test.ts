import { exitCodeOf } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { CelldError, DrainTimeoutError, FencedError } from "../src/index.ts";

const cause = new TypeError("below");

it.each([
  [
    new FencedError("the lease lapsed", { cause }),
    "FencedError",
    "CELLKIT_CELLD_FENCED",
    3,
    /^SELF-FENCE: the lease lapsed; /,
  ],
  [
    new DrainTimeoutError("workerd stayed", { cause }),
    "DrainTimeoutError",
    "CELLKIT_CELLD_DRAIN_TIMEOUT",
    4,
    /^workerd stayed$/,
  ],
])("%s has a name, a code, an exit code, a message and its cause", (error, name, code, exitCode, message) => {
  expect(error).toBeInstanceOf(CelldError);
  expect(error).toMatchObject({ name, code, cause });
  expect(error.message).toMatch(message);
  expect(exitCodeOf(error)).toBe(exitCode);
});
