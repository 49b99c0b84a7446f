import { afterEach, describe, expect, it, vi } from "vitest";
import { createBackendList, type DiscoveryEvent, parseDiscovery, RouterOptionError } from "../src/index.ts";

afterEach(() => vi.useRealTimers());

function messagesOf(...calls: readonly (() => unknown)[]): string[] {
  return calls.flatMap((call) => {
    try {
      call();
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
}

describe("a fixed list", () => {
  it("keeps its order, once each, without slashes at the end", async () => {
    const list = createBackendList({ origins: ["http://b", "http://a/", "http://b//"] });
    expect(await list.origins()).toEqual(["http://b", "http://a"]);
  });

  it.each([[["https://a"]], [["http://a", "a:1"]], [[""]]])("of %j is refused", (origins) => {
    expect(() => createBackendList({ origins })).toThrow(RouterOptionError);
  });

  it.each(["http://user:hunter2@h", "hunter2@h", "http://u:hunt@er2/@h", "https://u:hunter2@h"])(
    "of %j is refused without a word of what may be a password",
    (origin) => {
      const said = messagesOf(
        () => createBackendList({ origins: [origin] }),
        () => parseDiscovery(origin),
      );
      expect(said).toHaveLength(2);
      expect(said.join()).toContain("…@h");
      expect(said.join()).not.toMatch(/hunt|er2|user/);
    },
  );

  it("may not be empty without a name", () => {
    expect(() => createBackendList({})).toThrow(/no dispatchers/);
  });
});

describe("a name", () => {
  it.each([
    ["cells.ns.svc", { name: "cells.ns.svc", port: 8787 }],
    ["cells:80", { name: "cells", port: 80 }],
  ])("%s is read", (text, discovery) => {
    expect(parseDiscovery(text)).toEqual(discovery);
  });

  it.each(["", ":80", "a:", "a:0", "a:65536", "a:b", "a b", "http://a", "[::1]:80"])("%j is none", (text) => {
    expect(() => parseDiscovery(text)).toThrow(RouterOptionError);
  });
});

/** A list behind a resolver that a test controls. */
function discovered(origins: string[] = []) {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  const events: DiscoveryEvent[] = [];
  const dns = { answer: async (): Promise<string[]> => [], lookups: 0 };
  const list = createBackendList({
    origins,
    discovery: { name: "cells", port: 8787 },
    resolve: () => {
      dns.lookups += 1;
      return dns.answer();
    },
    onEvent: (event) => events.push(event),
  });
  return { list, dns, events };
}

describe("discovered dispatchers", () => {
  it("stand behind the fixed ones, sorted, once each", async () => {
    const { list, dns, events } = discovered(["http://10.0.0.2:8787", "http://z"]);
    dns.answer = async () => ["10.0.0.9", "10.0.0.10", "fd00::1", "10.0.0.2", "10.0.0.9"];
    expect(await list.origins()).toEqual([
      "http://10.0.0.2:8787",
      "http://z",
      "http://10.0.0.10:8787",
      "http://10.0.0.9:8787",
      "http://[fd00::1]:8787",
    ]);
    expect(events).toEqual([{ kind: "discovery", name: "cells", originCount: 4, problem: undefined }]);
  });

  it("are looked up once for all who ask at once, and again when they are used after five seconds", async () => {
    const { list, dns } = discovered();
    await Promise.all([list.origins(), list.origins(), list.origins()]);
    expect(dns.lookups).toBe(1);
    vi.advanceTimersByTime(4_999);
    await list.origins();
    expect(dns.lookups).toBe(1);
    vi.advanceTimersByTime(1);
    dns.answer = async () => ["10.0.0.1"];
    expect(await list.origins()).toEqual(["http://10.0.0.1:8787"]);
    expect(dns.lookups).toBe(2);
  });

  it("stay when a lookup fails, and it is not tried again for five seconds", async () => {
    const { list, dns, events } = discovered();
    dns.answer = async () => ["10.0.0.1"];
    await list.origins();
    vi.advanceTimersByTime(5_000);
    dns.answer = () => Promise.reject(Object.assign(new TypeError("x"), { code: "ENOTFOUND" }));
    expect(await list.origins()).toEqual(["http://10.0.0.1:8787"]);
    vi.advanceTimersByTime(4_999);
    expect(await list.origins()).toEqual(["http://10.0.0.1:8787"]);
    expect(dns.lookups).toBe(2);
    expect(events.at(-1)).toMatchObject({ originCount: 1, problem: "ENOTFOUND" });
  });

  it("go when a lookup says that there is nobody", async () => {
    const { list, dns } = discovered();
    dns.answer = async () => ["10.0.0.1"];
    await list.origins();
    vi.advanceTimersByTime(5_000);
    dns.answer = async () => [];
    expect(await list.origins()).toEqual([]);
  });

  it("do not hold a request when a lookup hangs, and count when it ends after all", async () => {
    const { list, dns, events } = discovered(["http://a"]);
    const { promise, resolve } = Promise.withResolvers<string[]>();
    dns.answer = () => promise;
    const waiting = list.origins();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await waiting).toEqual(["http://a"]);
    expect(events.map(({ problem }) => problem)).toEqual(["timeout"]);
    resolve(["10.0.0.1"]);
    await promise;
    expect(await list.origins()).toEqual(["http://a", "http://10.0.0.1:8787"]);
    expect(dns.lookups).toBe(1);
    expect(events.map(({ problem }) => problem)).toEqual(["timeout", undefined]);
  });

  it("that are known are waited for half a second, and at the next failing lookup not at all", async () => {
    const { list, dns } = discovered();
    dns.answer = async () => ["10.0.0.1"];
    const known = await list.origins();
    const hanging = Promise.withResolvers<string[]>();
    dns.answer = () => hanging.promise;
    vi.advanceTimersByTime(5_000);
    let answered = 0;
    const first = list.origins().then(() => answered++);
    await vi.advanceTimersByTimeAsync(400);
    const second = list.origins().then(() => answered++);
    expect(answered).toBe(0);
    // The second one does not wait for longer than the first: both wait for one lookup.
    await vi.advanceTimersByTimeAsync(100);
    expect(answered).toBe(2);
    await Promise.all([first, second]);
    expect(await list.origins()).toEqual(known);
    hanging.reject(Object.assign(new TypeError("x"), { code: "ETIMEOUT" }));
    await vi.advanceTimersByTimeAsync(5_000);
    dns.answer = () => new Promise(() => undefined);
    // No timer moves: whoever asks has the last answer at once.
    expect(await list.origins()).toEqual(known);
    expect(dns.lookups).toBe(3);
  });
});

it("the system's resolver is asked where no other is given", async () => {
  const list = createBackendList({ discovery: { name: "localhost", port: 1 } });
  expect(await list.origins()).toEqual(
    expect.arrayContaining([expect.stringMatching(/^http:\/\/(127\.0\.0\.1|\[::1\]):1$/)]),
  );
});
