/** Ledgers that break their promise, each in one way, for checkers to find. */
import type { Claim, StoredLedger } from "../../src/ledger.ts";
import { openMemoryLedger } from "../../src/memory-ledger.ts";

/** A good ledger but for the methods that are given. */
function withBug(good: StoredLedger, bug: Partial<StoredLedger>): StoredLedger {
  return new Proxy(good, {
    get: (target, property) => {
      const value: unknown = Reflect.get(bug, property) ?? Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Makes one answer in so many a wrong one, beginning with the first that can be. */
function everyFew(
  claim: StoredLedger["claim"],
  spoil: (answer: Claim) => Claim | undefined,
): StoredLedger["claim"] {
  let count = 0;
  return async (...args) => {
    const answer = await claim(...args);
    const spoiled = spoil(answer);
    return spoiled !== undefined && count++ % 20 === 0 ? spoiled : answer;
  };
}

export const plantedBugs: Readonly<Record<string, () => Promise<StoredLedger>>> = {
  async "forgets what it recorded"() {
    const open = () => openMemoryLedger({ retirable: true });
    let current = open();
    let count = 0;
    // Often enough that ids which are in use are among what is forgotten, whatever the seed.
    const next = () => {
      count++;
      if (count % 15 === 0) current = open();
      return current;
    };
    return withBug(await current, {
      claim: async (...args) => (await next()).claim(...args),
      lookup: async (...args) => (await next()).lookup(...args),
      restore: async (...args) => (await next()).restore(...args),
      retire: async (...args) => (await next()).retire(...args),
      sweep: async (...args) => (await next()).sweep(...args),
    });
  },
  async "answers new twice"() {
    const good = await openMemoryLedger();
    const claim = everyFew(good.claim.bind(good), (answer) =>
      answer.kind === "existing" ? { ...answer, kind: "new" } : undefined,
    );
    return withBug(good, { claim });
  },
  async "changes owners"() {
    const good = await openMemoryLedger();
    const claim = everyFew(good.claim.bind(good), (answer) =>
      answer.kind === "existing"
        ? { kind: "existing", owner: { ...answer.owner, backend: "http://elsewhere" } }
        : undefined,
    );
    return withBug(good, { claim });
  },
  async "lets a conflict through"() {
    const good = await openMemoryLedger();
    return withBug(good, {
      async claim(id, body, choose) {
        const answer = await good.claim(id, body, choose);
        const owner = answer.kind === "conflict" ? await good.lookup(id) : undefined;
        return owner === undefined ? answer : { kind: "existing", owner };
      },
    });
  },
};
