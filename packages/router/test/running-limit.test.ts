import { expect, it } from "vitest";
import { RunningLimit } from "../src/server/running-limit.ts";

const counts = ({ runningCount, waitingCount }: RunningLimit) => [runningCount, waitingCount];

it("a place goes to the one that came first", async () => {
  const limit = new RunningLimit(1);
  const first = await limit.enter();
  const order: string[] = [];
  const later = ["b", "c"].map(async (name) => {
    const place = await limit.enter();
    order.push(name);
    place.leave();
  });
  expect(counts(limit)).toEqual([1, 2]);
  first.leave();
  first.leave();
  await Promise.all(later);
  expect([order, counts(limit)]).toEqual([
    ["b", "c"],
    [0, 0],
  ]);
});

it("one that is lent is others' meanwhile, and is waited for anew", async () => {
  const limit = new RunningLimit(1);
  const first = await limit.enter();
  const wait = Promise.withResolvers<string>();
  const lent = first.lend(() => wait.promise);
  expect(counts(limit)).toEqual([0, 1]);
  const second = await limit.enter();
  wait.resolve("done");
  let isBack = false;
  void lent.finally(() => {
    isBack = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect([isBack, counts(limit)]).toEqual([false, [1, 1]]);
  second.leave();
  expect([await lent, counts(limit)]).toEqual(["done", [1, 0]]);
  first.leave();
  expect(counts(limit)).toEqual([0, 0]);
});

it("one that is lent twice at once is one place, also where what was waited for failed", async () => {
  const limit = new RunningLimit(2);
  const place = await limit.enter();
  const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const lent = Promise.allSettled(waits.map(({ promise }) => place.lend(() => promise)));
  expect(counts(limit)).toEqual([0, 2]);
  waits[0].reject(new RangeError("x"));
  waits[1].resolve();
  expect((await lent).map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(counts(limit)).toEqual([1, 0]);
  place.leave();
  expect(counts(limit)).toEqual([0, 0]);
});

it.each([1, 2])("one that is left while it is lent is not taken again, with room for %i", async (room) => {
  const limit = new RunningLimit(room);
  const place = await limit.enter();
  const wait = Promise.withResolvers<void>();
  const lent = place.lend(() => wait.promise);
  const other = await limit.enter();
  wait.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  place.leave();
  other.leave();
  await lent;
  expect(counts(limit)).toEqual([0, 0]);
});
