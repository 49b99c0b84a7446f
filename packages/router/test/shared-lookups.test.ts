import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resolveBy, SharedLookups } from "../src/backend/shared-lookups.ts";

const failure = (code: string) => Object.assign(new RangeError(code), { code });

/** Lookups that are answered when the test says. */
function open() {
  const asked: { name: string; answer: (addresses: string[]) => void; fail: (code: string) => void }[] = [];
  const lookups = new SharedLookups((name) => {
    const { promise, resolve, reject } = Promise.withResolvers<string[]>();
    asked.push({ name, answer: resolve, fail: (code) => reject(failure(code)) });
    return promise;
  });
  const last = () => asked.at(-1) as (typeof asked)[number];
  return { lookups, asked, last };
}

/** What a lookup says within so many milliseconds of the test's clock. */
async function within(ms: number, finding: Promise<unknown>): Promise<unknown> {
  let said: unknown = "waits";
  finding.then(
    (addresses) => {
      said = addresses;
    },
    (error) => {
      said = error.code;
    },
  );
  await vi.advanceTimersByTimeAsync(ms);
  return said;
}

describe("lookups of a name", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("are one for all who ask meanwhile, and other names have their own", async () => {
    const { lookups, asked } = open();
    const all = Promise.all([lookups.find("a"), lookups.find("a"), lookups.find("b")]);
    expect(asked.map(({ name }) => name)).toEqual(["a", "b"]);
    asked[0]?.answer(["10.0.0.1"]);
    asked[1]?.answer(["10.0.0.2", "::2"]);
    expect(await all).toEqual([["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2", "::2"]]);
  });

  it("count for five seconds", async () => {
    const { lookups, asked, last } = open();
    const first = lookups.find("a");
    last().answer(["10.0.0.1"]);
    await first;
    expect(await within(4_900, lookups.find("a"))).toEqual(["10.0.0.1"]);
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(200);
    const second = lookups.find("a");
    last().answer(["10.0.0.2"]);
    expect([await second, asked.length]).toEqual([["10.0.0.2"], 2]);
  });

  it("keep the last good answer while a later one runs or fails, and none is begun before it ended", async () => {
    const { lookups, asked, last } = open();
    const first = lookups.find("a");
    last().answer(["10.0.0.1"]);
    await first;
    await vi.advanceTimersByTimeAsync(5_100);
    const later = lookups.find("a");
    expect(await within(400, later)).toBe("waits");
    expect(await within(150, later)).toEqual(["10.0.0.1"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await within(0, lookups.find("a"))).toEqual(["10.0.0.1"]);
    expect(asked).toHaveLength(2);
    last().fail("ETIMEOUT");
    expect(await within(900, lookups.find("a"))).toEqual(["10.0.0.1"]);
    await vi.advanceTimersByTimeAsync(200);
    // Behind one that failed nobody waits.
    expect(await within(0, lookups.find("a"))).toEqual(["10.0.0.1"]);
    expect(asked).toHaveLength(3);
    last().answer(["10.0.0.3"]);
    await vi.advanceTimersByTimeAsync(0);
    expect(await within(0, lookups.find("a"))).toEqual(["10.0.0.3"]);
  });

  it("that were never answered fail at once behind the first, and are tried again every second", async () => {
    const { lookups, asked, last } = open();
    const first = lookups.find("a");
    expect(await within(2_000, first)).toBe("waits");
    last().fail("ETIMEOUT");
    await expect(first).rejects.toMatchObject({ code: "ETIMEOUT" });
    expect(await within(0, lookups.find("a"))).toBe("ETIMEOUT");
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(await within(0, lookups.find("a"))).toBe("ETIMEOUT");
    expect(asked).toHaveLength(2);
  });

  it.each(["ENOTFOUND", "ENODATA"])(
    "that say that there is no such name (%s) take its address away",
    async (code) => {
      const { lookups, last } = open();
      const first = lookups.find("a");
      last().answer(["10.0.0.1"]);
      await first;
      await vi.advanceTimersByTimeAsync(5_100);
      const second = lookups.find("a");
      last().fail(code);
      await expect(second).rejects.toMatchObject({ code });
      await vi.advanceTimersByTimeAsync(1_100);
      // Who answers so is there, and is waited for.
      const third = lookups.find("a");
      await vi.advanceTimersByTimeAsync(100);
      last().answer(["10.0.0.4"]);
      expect(await third).toEqual(["10.0.0.4"]);
    },
  );

  it("may be waited for no longer than a while", async () => {
    const { lookups, last } = open();
    const first = lookups.findWithin(300, "a");
    expect(await within(200, first)).toBe("waits");
    expect(await within(150, first)).toBe("ETIMEOUT");
    const second = lookups.findWithin(300, "a");
    last().answer(["10.0.0.1"]);
    expect(await second).toEqual(["10.0.0.1"]);
    const third = lookups.findWithin(300, "b");
    last().fail("ESERVFAIL");
    await expect(third).rejects.toMatchObject({ code: "ESERVFAIL" });
  });

  it("answer sockets, which ask for one or for all", async () => {
    const { lookups, last } = open();
    const ask = (all: boolean) =>
      new Promise<unknown[]>((resolve) => lookups.lookup("a", { all }, (...answer) => resolve(answer)));
    const one = ask(false);
    last().answer(["::1", "10.0.0.1"]);
    expect(await one).toEqual([null, "::1", 6]);
    const both = [
      { address: "::1", family: 6 },
      { address: "10.0.0.1", family: 4 },
    ];
    expect(await ask(true)).toEqual([null, both]);
    await vi.advanceTimersByTimeAsync(5_100);
    const none = ask(false);
    last().answer([]);
    expect(await none).toMatchObject([{ code: "ENOTFOUND" }, "", 0]);
    expect(await resolveBy(lookups.lookup)("127.0.0.1")).toEqual(["127.0.0.1"]);
  });

  it("are not needed for addresses, and do not remember names without end", async () => {
    const { lookups, asked } = open();
    expect(await lookups.find("::1")).toEqual(["::1"]);
    for (let at = 0; at <= 4_096; at += 1) void lookups.find(`n${at}`);
    expect(asked).toHaveLength(4_097);
    void lookups.find("n4096");
    void lookups.find("n0");
    expect(asked.at(-1)?.name).toBe("n0");
    expect(asked).toHaveLength(4_098);
  });
});
