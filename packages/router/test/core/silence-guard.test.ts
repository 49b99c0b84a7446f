import { expect, it } from "vitest";
import { SilenceGuard } from "../../src/core/silence-guard.ts";

it("a dispatcher is silent when many calls wait for it and none was answered for two seconds", () => {
  const guard = new SilenceGuard(2);
  expect(guard.isSilent("a", 0)).toBe(false);
  guard.begin("a", 0);
  expect(guard.isSilent("a", 9_000)).toBe(false);
  guard.begin("a", 100);
  expect(guard.isSilent("a", 1_999)).toBe(false);
  expect(guard.isSilent("a", 2_000)).toBe(true);
  expect(guard.isSilent("b", 2_000)).toBe(false);
});

it("an answer shows that it is not, and a call that failed does not", () => {
  const guard = new SilenceGuard(1);
  guard.begin("a", 0);
  guard.begin("a", 0);
  guard.begin("a", 0);
  guard.end("a", false, 2_000);
  expect(guard.isSilent("a", 2_000)).toBe(true);
  guard.end("a", true, 2_500);
  expect(guard.isSilent("a", 2_500)).toBe(false);
  expect(guard.isSilent("a", 4_500)).toBe(true);
});

it("one for which nothing waits is asked, however long it was silent", () => {
  const guard = new SilenceGuard(1);
  guard.begin("a", 0);
  guard.end("a", false, 5_000);
  expect(guard.isSilent("a", 10_000)).toBe(false);
  // Its two seconds begin anew with the next call.
  guard.begin("a", 10_000);
  expect(guard.isSilent("a", 10_000)).toBe(false);
  expect(guard.isSilent("a", 11_999)).toBe(false);
});
