import { describe, expect, it } from "vitest";
import { type ConformanceFeatures, ledgerConformance, type OpenLedger } from "../../src/conformance/index.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { LedgerMemory, openMemoryLedger } from "../../src/memory-ledger.ts";
import { openWith } from "../support/open-with.ts";

/** For a case that hangs. On a memory it comes to where it hangs within one turn of the event loop, so that no pause cuts it short. */
const TIMEOUT_MS = 200;

/**
 * The rules that a store breaks, each with what the suite says of it.
 * @param hanging the one that does not end by itself; all others have the suite's own time
 */
async function broken(
  open: OpenLedger,
  features: ConformanceFeatures = {},
  hanging?: string,
): Promise<Map<string, string>> {
  const withTime = (timeoutMs?: number) =>
    ledgerConformance(open, { plant: async () => {}, timeoutMs, ...features });
  const cases = [
    ...withTime().filter(({ name }) => name !== hanging),
    ...withTime(TIMEOUT_MS).filter(({ name }) => name === hanging),
  ];
  const failures = new Map<string, string>();
  await Promise.all(
    cases.map(async ({ name, skip, run }) => {
      if (skip !== undefined) return;
      await run().catch((error: Error) => failures.set(name, error.message));
    }),
  );
  return failures;
}

/** A store whose records cannot be planted, but are otherwise those of a good one. */
const withoutPlant: ConformanceFeatures = { plant: undefined };

it("a store that is right breaks no rule", async () => {
  const memories = new Map<string, LedgerMemory>();
  const memoryOf = (place: string) => {
    const memory = memories.get(place) ?? new LedgerMemory();
    memories.set(place, memory);
    return memory;
  };
  const open: OpenLedger = (place, options) => openMemoryLedger({ ...options, memory: memoryOf(place) });
  const plant = async (place: string, key: string, bytes: Uint8Array) => memoryOf(place).plant(key, bytes);
  expect(await broken(open, { plant })).toEqual(new Map());
  expect(
    await broken(
      openWith(() => ({})),
      withoutPlant,
    ),
  ).toEqual(new Map());
});

/** Ends at once, whatever is under way. */
const closesAtOnce = { close: async () => {}, [Symbol.asyncDispose]: async () => {} };
const closing = [
  [
    "closing twice is closing once, and every call after it is refused",
    expect.stringMatching(/^claim after close: expected CELLKIT_LEDGER_CLOSED/),
  ],
  [
    "closing waits for a claim that is under way, and what that was told is so",
    "when close has ended, the claim that was under way: expected 'answered', not 'under way'",
  ],
];

it("a store whose close does nothing breaks both rules of closing, and no other", async () => {
  const failures = await broken(
    openWith(() => closesAtOnce),
    withoutPlant,
  );
  expect([...failures].toSorted()).toEqual(closing);
});

it("a store whose close does nothing is found where the process is held up meanwhile, too", async () => {
  const holdUp = () => {
    const sinceMs = performance.now();
    while (performance.now() - sinceMs < 300);
  };
  const close = async () => {
    // When the suite has begun to wait.
    void Promise.resolve().then(holdUp);
  };
  const open = openWith(() => ({ ...closesAtOnce, close }));
  const [name, message] = closing[1] ?? [];
  const [rule] = ledgerConformance(open, withoutPlant).filter((each) => each.name === name);
  await expect(rule?.run()).rejects.toThrow(message);
});

it("a store that ignores signals breaks both rules of signals, the one by not ending", async () => {
  const failures = await broken(
    openWith((good) => ({
      claim: (id, body, choose) => good.claim(id, body, choose),
      lookup: (id) => good.lookup(id),
      count: () => good.count(),
    })),
    withoutPlant,
    "a claim can be given up while an owner is chosen; the same claim again settles it",
  );
  expect([...failures].toSorted()).toEqual([
    [
      "a call whose signal is aborted rejects with its reason and does nothing",
      expect.stringMatching(/^claim: expected the signal's reason, not the answer/),
    ],
    [
      "a claim can be given up while an owner is chosen; the same claim again settles it",
      `not ended after ${TIMEOUT_MS} ms; still running: claim`,
    ],
  ]);
});

describe("separate Maps that know nothing of each other", () => {
  const separate: OpenLedger = (_, options) => openMemoryLedger(options);
  const nameless: OpenLedger = async (place, options) => {
    const good = await separate(place, options);
    return new Proxy(good, {
      get: (target, property) => {
        if (property === "ledgerId") return undefined;
        const value: unknown = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  /** Every rule that looks through more than one handle. */
  const SHARED = [
    "a sweep leaves alone what was claimed anew after it began",
    "an old record is removed at once, and its id can be claimed with other bytes",
    "another handle finds what one has claimed, also after that was closed",
    "claims at once never go above the capacity, and use it wholly",
    "claims of one id with the same owner at once are told apart: one is new",
    "closing waits for a claim that is under way, and what that was told is so",
    "of 96 claims of one id at once exactly one is new, and all see its owner",
    "of several that create a ledger at once all see the same one",
    "of several that restore other bindings of one key at once exactly one adds",
    "of several that retire one old id at once one is told so, and the others not",
    "of two bodies that race for one id one wins, and the other conflicts everywhere",
    "what was chosen is dropped when another claimed the id meanwhile",
    "where no ledger was created, requireExisting refuses and creates nothing",
    "96 new ids at once are all new",
  ].toSorted();

  it("break every rule of several handles, and no other", async () => {
    expect([...(await broken(separate, withoutPlant)).keys()].toSorted()).toEqual(SHARED);
  });

  it("break those of ledgerId, too, without one", async () => {
    const failures = await broken(nameless, withoutPlant);
    const own = [
      "a ledger has everything that a ledger has",
      "ledgers of different names know nothing of each other",
    ];
    expect([...failures.keys()].toSorted()).toEqual([...SHARED, ...own].toSorted());
    expect(failures.get("of several that create a ledger at once all see the same one")).toMatch(
      /^four handles: expected one non-empty text as their ledgerId, not \[ undefined/,
    );
  });

  it("with one ledgerId are found by a claim that the others do not see", async () => {
    const failures = await broken(async (place, options) => {
      const good = await nameless(place, options);
      return Object.assign(Object.create(good), { ledgerId: place }) as StoredLedger;
    }, withoutPlant);
    expect(failures.get("of several that create a ledger at once all see the same one")).toBe(
      "the claim through handle 2: expected 'existing', not 'new'",
    );
  });
});

it("a plant that puts nothing there is found by every case that plants", async () => {
  const failures = await broken(openWith(() => ({})));
  expect([...failures.keys()].toSorted()).toEqual([
    "a corrupt record is an error for its id, stays as it is, and never counts as absent",
    "a corrupt record is not retired",
    "white space and the order of a record's members do not matter",
  ]);
});

it("one handle for all is found wherever several are asked for", async () => {
  const handles = new Map<string, Promise<StoredLedger>>();
  const failures = await broken((place, options) => {
    const handle = handles.get(place) ?? openMemoryLedger(options);
    handles.set(place, handle);
    return handle;
  }, withoutPlant);
  const message = "opening twice: expected two handles of the ledger, not the same one again";
  expect(failures.get("claims of one id with the same owner at once are told apart: one is new")).toBe(
    message,
  );
  expect(failures.get("of several that create a ledger at once all see the same one")).toBe(message);
});

it("a method that is missing is told by its name", async () => {
  const open = openWith(() => ({}));
  const failures = await broken(async (place, options) => {
    const { claim, lookup, count, entry, name, url, ledgerId } = await open(place, options);
    return { claim, lookup, count, entry, name, url, ledgerId } as unknown as StoredLedger;
  }, withoutPlant);
  expect(failures.get("a ledger has everything that a ledger has")).toMatch(
    /^methods that are missing: expected \[\], not \[\s+'retire',\s+'sweep',\s+'entries',\s+'restore',\s+'close',\s+'\[Symbol.asyncDispose\]'\s+\]$/,
  );
  expect(failures.get("the same bytes find the first owner, and no owner is chosen again")).toBe(
    "this ledger has no method close: a StoredLedger has it",
  );
});

it("what is no ledger, and what opens none, is an error of the suite's own or the store's", async () => {
  const nothing = await broken(async () => undefined as unknown as StoredLedger, withoutPlant);
  expect(nothing.get("the text of an origin is kept as it is")).toBe(
    "opening: expected a StoredLedger, not undefined",
  );
  const unreachable = await broken(() => Promise.reject(new TypeError("no such host")), withoutPlant);
  expect(unreachable.get("the text of an origin is kept as it is")).toBe("no such host");
});

it("the list has every rule, and skips what a store cannot be held against", async () => {
  const open = () => openMemoryLedger();
  const plant = async () => {};
  const all = ledgerConformance(open, { plant });
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  expect(all.filter(({ skip }) => skip !== undefined)).toEqual([]);
  const skipped = (features?: ConformanceFeatures) => {
    const cases = ledgerConformance(open, features);
    expect(cases.map(({ name }) => name)).toEqual(all.map(({ name }) => name));
    return cases.flatMap(({ skip = [] }) => skip);
  };
  expect(skipped()).toEqual(Array(3).fill("no plant was given, which puts a corrupt record into the store"));
  expect(skipped({ plant, lacks: { capacity: "no counter" } })).toEqual(
    Array(3).fill("the store lacks capacity: no counter"),
  );
  expect(skipped({ plant, lacks: { retiring: "never" } })).toHaveLength(10);
  expect(skipped({ plant, lacks: { requireExisting: "" } })).toEqual(["the store lacks requireExisting: "]);
  const [one] = ledgerConformance(open, { lacks: { retiring: "never" } }).filter(({ skip }) => skip);
  await expect(one?.run()).rejects.toMatchObject({ code: "CELLKIT_LEDGER_CONFORMANCE" });
});

it("a store that lacks retiring may refuse to be opened as retirable", async () => {
  const good = openWith(() => ({}));
  const open: OpenLedger = async (place, options) => {
    if (options?.retirable === true) throw new TypeError("never");
    return good(place, options);
  };
  expect(await broken(open, { ...withoutPlant, lacks: { retiring: "never" } })).toEqual(new Map());
});

it.each([{ timeoutMs: 0 }, { timeoutMs: 1.5 }, { timeoutMs: 2 ** 31 }, { lacks: { sweeping: "never" } }])(
  "%j is refused",
  (features) => {
    expect(() => ledgerConformance(() => openMemoryLedger(), features as ConformanceFeatures)).toThrow(
      expect.objectContaining({ code: "CELLKIT_LEDGER_OPTION" }),
    );
  },
);
