import { afterEach, expect, test, vi } from "vitest";
import { LeaseWatch } from "../src/lease-watch.ts";

afterEach(() => void vi.useRealTimers());

test.each([
  ["in a minute", 60_000],
  ["in a month", 30 * 86_400_000],
  ["beyond what a timer takes", 2 ** 31],
])("a lease that ends %s is asked for once a minute", async (_, lifeMs) => {
  vi.useFakeTimers();
  let asked = 0;
  const leases = new LeaseWatch({
    clock: Date.now,
    expiryMs: async () => {
      asked += 1;
      return Date.now() + lifeMs;
    },
  });
  leases.watch("a", () => expect.unreachable());
  await vi.advanceTimersByTimeAsync(59_000);
  expect(asked).toBe(1);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(asked).toBe(3);
  leases.close();
});
