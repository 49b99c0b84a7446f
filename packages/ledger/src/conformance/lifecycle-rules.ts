/** Opening, names, closing, and giving up. */

import { ConformanceError } from "../errors.ts";
import type { LedgerOptions, StoredLedger } from "../ledger.ts";
import { chooser, expectCode, expectEqual, expectRefusal, type Rule } from "./conformance-case.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";

/** Every call of a ledger; the place must be retirable for the last two. */
function everyCall(
  ledger: StoredLedger,
  key: string,
  signal?: AbortSignal,
): [string, () => Promise<unknown>][] {
  const owner = { backend: A, bodyHash: "blake3:00" };
  const options = { signal };
  return [
    ["claim", () => ledger.claim("id", "b", chooser(A).choose, options)],
    ["lookup", () => ledger.lookup("id", options)],
    ["count", () => ledger.count(options)],
    ["entry", () => ledger.entry(key, options)],
    ["entries", () => ledger.entries(options)[Symbol.asyncIterator]().next()],
    ["restore", () => ledger.restore(key, owner, options)],
    ["retire", () => ledger.retire("id", { ...options, quarantineMs: 0 })],
    ["sweep", () => ledger.sweep({ ...options, quarantineMs: 0 })],
  ];
}

export const lifecycleRules: readonly Rule[] = [
  {
    name: "ledgers of different names know nothing of each other",
    async run(scene) {
      const names = [undefined, "parents", "scoped-ops", "0".repeat(64)];
      const ledgers: StoredLedger[] = [];
      for (const name of names) {
        const ledger = await scene.open(name === undefined ? undefined : { name });
        ledgers.push(ledger);
        expectEqual(ledger.name, name ?? "executions", "name");
        const owner = { backend: `http://node-${ledgers.length}`, bodyHash: scene.digest.bodyHash("b") };
        const claim = await ledger.claim("id", "b", chooser(owner.backend).choose);
        expectEqual(claim, { kind: "new", owner }, `the same id in ${ledger.name}`);
      }
      for (const ledger of ledgers) {
        expectEqual(await ledger.count(), 1, `count of ${ledger.name}`);
        let entries = 0;
        for await (const { owner } of ledger.entries()) if (owner !== undefined) entries++;
        expectEqual(entries, 1, `entries of ${ledger.name}`);
      }
      expectEqual(new Set(ledgers.map(({ ledgerId }) => ledgerId)).size, names.length, "how many ledgerIds");
    },
  },
  {
    name: "options out of range are refused at the door",
    async run(scene) {
      const bad: LedgerOptions[] = ["", "A", "a_b", "a/b", "..", "a".repeat(65)].map((name) => ({ name }));
      bad.push(...[0, -1, 1.5, Number.NaN].map((capacity) => ({ capacity })));
      for (const options of bad)
        await expectCode(() => scene.open(options), "CELLKIT_LEDGER_OPTION", JSON.stringify(options));
    },
  },
  {
    name: "where no ledger was created, requireExisting refuses and creates nothing",
    needs: ["requireExisting"],
    async run(scene) {
      const options = { requireExisting: true };
      const missing = "CELLKIT_LEDGER_MISSING";
      for (const what of ["at first", "again"]) await expectCode(() => scene.open(options), missing, what);
      const created = await scene.open();
      const opened = await scene.open(options);
      expectEqual(opened.ledgerId, created.ledgerId, "ledgerId");
      expectEqual(await opened.count(), 0, "count: what marks a ledger is no record");
      const other = { ...options, name: "other" };
      await expectCode(() => scene.open(other), missing, "a ledger of another name");
    },
  },
  {
    name: "of several that create a ledger at once all see the same one",
    async run(scene) {
      const ledgers = await scene.openSeveral(4);
      expectEqual(new Set(ledgers.map(({ ledgerId }) => ledgerId)).size, 1, "how many ledgerIds");
    },
  },
  {
    name: "closing twice is closing once, and every call after it is refused",
    async run(scene) {
      const ledger = await scene.open({ retirable: true });
      await ledger.claim("id", "b", chooser(A).choose);
      await Promise.all([ledger.close(), ledger.close()]);
      await ledger[Symbol.asyncDispose]();
      for (const [name, call] of everyCall(ledger, scene.digest.key("id")))
        await expectCode(call, "CELLKIT_LEDGER_CLOSED", `${name} after close`);
    },
  },
  {
    name: "closing waits for a claim that is under way, and what that was told is so",
    async run(scene) {
      const ledger = await scene.open();
      const begun = Promise.withResolvers<void>();
      const chosen = Promise.withResolvers<string>();
      const outcome = ledger
        .claim("id", "b", () => {
          begun.resolve();
          return chosen.promise;
        })
        .then(
          ({ kind }) => kind,
          (error: unknown) => (error as { code?: string }).code,
        );
      await begun.promise;
      const closing = ledger.close();
      chosen.resolve(A);
      await closing;
      const answer = await outcome;
      const found = await (await scene.open()).lookup("id");
      if (answer === "new") expectEqual(found?.backend, A, "the owner after a claim that was told new");
      else expectEqual([answer, found], ["CELLKIT_LEDGER_CLOSED", undefined], "the claim under way");
    },
  },
  {
    name: "a call whose signal is aborted rejects with its reason and does nothing",
    async run(scene) {
      const ledger = await scene.open({ retirable: true });
      const reason = new ConformanceError("given up by the suite");
      const fits = { expected: "the signal's reason", what: "" };
      for (const [what, call] of everyCall(ledger, scene.digest.key("id"), AbortSignal.abort(reason)))
        await expectRefusal(call, (error) => error === reason, { ...fits, what });
      expectEqual(await ledger.count(), 0, "count");
    },
  },
  {
    name: "a claim can be given up while an owner is chosen; the same claim again settles it",
    async run(scene) {
      const ledger = await scene.open();
      const reason = new ConformanceError("given up by the suite");
      const giveUp = new AbortController();
      const never = () => {
        setImmediate(() => giveUp.abort(reason));
        return new Promise<string>(() => {});
      };
      const claim = () => ledger.claim("id", "b", never, { signal: giveUp.signal });
      const fits = { expected: "the signal's reason", what: "a claim whose owner is never chosen" };
      await expectRefusal(claim, (error) => error === reason, fits);
      expectEqual((await ledger.claim("id", "b", chooser(B).choose)).kind, "new", "the same claim again");
    },
  },
];
