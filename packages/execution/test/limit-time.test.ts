import { afterEach, expect, test, vi } from "vitest";
import { inTime, limitTime } from "../src/limit-time.ts";

const never = new Promise<{ kind: "bytes" }>(() => undefined);

afterEach(() => void vi.useRealTimers());

test("a clock that was stopped holds no process, and ends nothing any more", () => {
  vi.useFakeTimers();
  const caller = new AbortController();
  const time = limitTime(1_000, caller.signal);
  expect(vi.getTimerCount()).toBe(1);
  time.clear();
  expect(vi.getTimerCount()).toBe(0);
  caller.abort();
  expect(time.signal.aborted).toBe(false);
});

test("a file that cannot be read in time is late", async () => {
  const time = limitTime(5, undefined);
  expect(await inTime(never, time.signal)).toMatchObject({ kind: "late", cause: { name: "TimeoutError" } });
  expect(await inTime(never, time.signal)).toMatchObject({ kind: "late" });
});

test("a file that is read in time is there", async () => {
  const time = limitTime(60_000, undefined);
  expect(await inTime(Promise.resolve({ kind: "bytes" }), time.signal)).toEqual({ kind: "bytes" });
  time.clear();
});

test("a caller's signal ends it with the caller's reason, also when it was aborted before", async () => {
  const caller = new AbortController();
  const time = limitTime(60_000, caller.signal);
  caller.abort("enough");
  expect(time.signal.reason).toBe("enough");
  time.clear();
  const late = limitTime(60_000, caller.signal);
  expect(late.signal.reason).toBe("enough");
  late.clear();
});
