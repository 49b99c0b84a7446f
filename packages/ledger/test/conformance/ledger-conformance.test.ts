import { expect, it } from "vitest";
import { ledgerConformance, type OpenLedger } from "../../src/conformance/index.ts";
import { openMemoryLedger } from "../../src/memory-ledger.ts";
import { openWith } from "../support/open-with.ts";

const OTHER = { backend: "http://elsewhere", bodyHash: "blake3:00" };

/** A bug, and the rule that has to find it. */
const bugs: readonly [string, RegExp, OpenLedger][] = [
  ["keeps nothing", /another handle finds what one has claimed/, (_, options) => openMemoryLedger(options)],
  [
    "asks for an owner first",
    /no owner is chosen again/,
    openWith((good) => ({
      claim: async (id, body, choose, options) => {
        const chosen = choose();
        chosen.catch(() => {});
        return good.claim(id, body, () => chosen, options);
      },
    })),
  ],
  [
    "lets conflicts through",
    /other bytes are a conflict/,
    openWith((good) => ({
      claim: async (...args) => {
        const answer = await good.claim(...args);
        return answer.kind === "conflict" ? { kind: "existing", owner: OTHER } : answer;
      },
    })),
  ],
  [
    "tells every racer that it won",
    /exactly one is new/,
    openWith((good) => ({
      claim: async (...args) => {
        const answer = await good.claim(...args);
        return answer.kind === "existing" ? { ...answer, kind: "new" } : answer;
      },
    })),
  ],
  [
    "records under another key",
    /under published hashes/,
    openWith((good) => ({
      claim: (id, body, choose, options) => good.claim(`${id} `, body, choose, options),
      lookup: (id, options) => good.lookup(`${id} `, options),
    })),
  ],
  [
    "takes any origin",
    /no http origin is refused/,
    openWith((good) => ({
      claim: (id, body, choose, options) =>
        good.claim(id, body, () => choose().then(() => "http://n"), options),
    })),
  ],
  [
    "is never full",
    /at capacity new ids are refused/,
    openWith((good) => ({
      claim: async (...args) => {
        const answer = await good.claim(...args);
        return answer.kind === "full" ? { kind: "new", owner: OTHER } : answer;
      },
    })),
  ],
  [
    "knows no absent record",
    /a corrupt record is an error for its id/,
    openWith((good) => ({ lookup: (id, options) => good.lookup(id, options).catch(() => undefined) })),
  ],
  [
    "retires at once",
    /a young record stays, is marked/,
    openWith((good) => ({ retire: (id, options) => good.retire(id, { ...options, quarantineMs: 0 }) })),
  ],
  [
    "sweeps nothing",
    /a young record stays, is marked/,
    openWith((good) => ({
      sweep: (options) => good.sweep({ ...options, quarantineMs: 1e15 }),
    })),
  ],
  [
    "is still open after its end",
    /every call after it is refused/,
    openWith(() => ({ close: async () => {}, [Symbol.asyncDispose]: async () => {} })),
  ],
  [
    "does not listen to signals",
    /whose signal is aborted/,
    openWith((good) => ({ count: () => good.count() })),
  ],
  [
    "says it restored over another",
    /never over another/,
    openWith((good) => ({
      restore: async (...args) => {
        const answer = await good.restore(...args);
        return answer === "conflict" ? "present" : answer;
      },
    })),
  ],
  [
    "has one ledger for all names",
    /know nothing of each other/,
    (
      (open) => (place, options) =>
        open(place, { ...options, name: "executions" })
    )(openWith(() => ({}))),
  ],
];

it.each(bugs)("the suite finds a ledger that %s", async (_, rule, open) => {
  const planted = async () => {};
  const cases = ledgerConformance(open, { plant: planted }).filter(({ name }) => rule.test(name));
  expect(cases).toHaveLength(1);
  await expect(cases[0]?.run()).rejects.toMatchObject({ code: "CELLKIT_LEDGER_CONFORMANCE" });
});
