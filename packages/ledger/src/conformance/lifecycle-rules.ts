/** Opening, names, closing, and giving up. */
import { setImmediate, setTimeout } from "node:timers/promises";
import { ConformanceError } from "../errors.ts";
import type { LedgerOptions, QuarantineOptions, StoredLedger } from "../ledger.ts";
import { chooser, expectCode, expectEqual, expectRefusal, expectSameLedger } from "./expectations.ts";
import type { Rule, Scene } from "./scene.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";

/** So long a close that waits for nothing has to show it. */
const CLOSING_MS = 100;

/** Every call of a ledger. */
function everyCall(
  ledger: StoredLedger,
  { digest, canRetire }: Scene,
  signal?: AbortSignal,
): [string, () => Promise<unknown>][] {
  const key = digest.key("id");
  const owner = { backend: A, bodyHash: "blake3:00" };
  const options = { signal };
  return [
    ["claim", () => ledger.claim("id", "b", chooser(A).choose, options)],
    ["lookup", () => ledger.lookup("id", options)],
    ["count", () => ledger.count(options)],
    ["entry", () => ledger.entry(key, options)],
    ["entries", () => ledger.entries(options)[Symbol.asyncIterator]().next()],
    ["restore", () => ledger.restore(key, owner, options)],
    ...(canRetire ? retiringCalls(ledger, { ...options, quarantineMs: 0 }) : []),
  ];
}

function retiringCalls(ledger: StoredLedger, options: QuarantineOptions): [string, () => Promise<unknown>][] {
  return [
    ["retire", () => ledger.retire("id", options)],
    ["sweep", () => ledger.sweep(options)],
  ];
}

export const lifecycleRules: readonly Rule[] = [
  {
    name: "a ledger has everything that a ledger has",
    async run(scene) {
      const ledger = await scene.open();
      expectEqual(scene.missingMethods(), [], "methods that are missing");
      expectSameLedger([ledger], "one handle");
      expectEqual(
        [typeof ledger.url, ledger.url === ""],
        ["string", false],
        "url: a text that says something",
      );
      expectEqual(ledger.name, "executions", "name");
    },
  },
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
      for (const ledger of ledgers) expectSameLedger([ledger], ledger.name);
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
      expectSameLedger([created, opened], "the one that created it, and the one that found it");
      expectEqual(await opened.count(), 0, "count: what marks a ledger is no record");
      const other = { ...options, name: "other" };
      await expectCode(() => scene.open(other), missing, "a ledger of another name");
    },
  },
  {
    name: "of several that create a ledger at once all see the same one",
    async run(scene) {
      const ledgers = await scene.openSeveral(4);
      expectSameLedger(ledgers, "four handles");
      for (const [index, ledger] of ledgers.entries()) {
        const { kind } = await ledger.claim("id", "b", chooser(`http://node-${index}`).choose);
        expectEqual(kind, index === 0 ? "new" : "existing", `the claim through handle ${index + 1}`);
        const found = await ledger.lookup("id");
        expectEqual(found?.backend, "http://node-0", `the owner that handle ${index + 1} sees`);
      }
    },
  },
  {
    name: "closing twice is closing once, and every call after it is refused",
    async run(scene) {
      const ledger = await scene.open({ retirable: scene.canRetire });
      await ledger.claim("id", "b", chooser(A).choose);
      await Promise.all([ledger.close(), ledger.close()]);
      await ledger[Symbol.asyncDispose]();
      for (const [name, call] of everyCall(ledger, scene))
        await expectCode(call, "CELLKIT_LEDGER_CLOSED", `${name} after close`);
    },
  },
  {
    name: "closing waits for a claim that is under way, and what that was told is so",
    async run(scene) {
      const ledger = await scene.open();
      const begun = Promise.withResolvers<void>();
      const chosen = Promise.withResolvers<string>();
      let state: "under way" | "answered" = "under way";
      const outcome = ledger
        .claim("id", "b", () => {
          begun.resolve();
          return chosen.promise;
        })
        .then(
          ({ kind }) => kind,
          (error: unknown) => (error as { code?: string }).code,
        )
        .finally(() => {
          state = "answered";
        });
      const expectAnswered = async () => {
        await setImmediate();
        expectEqual(state, "answered", "when close has ended, the claim that was under way");
      };
      await begun.promise;
      // Its owner is chosen only when it is clear that closing waits, or after a while.
      let hasClosed = false;
      const closing = ledger.close().then(async () => {
        hasClosed = true;
        await expectAnswered();
      });
      await Promise.race([closing, setTimeout(CLOSING_MS)]);
      // A process that is held up sees the while end before it has judged a close that ended at once.
      if (hasClosed) await closing;
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
      const ledger = await scene.open({ retirable: scene.canRetire });
      const reason = new ConformanceError("given up by the suite");
      const fits = { expected: "the signal's reason", what: "" };
      for (const [what, call] of everyCall(ledger, scene, AbortSignal.abort(reason)))
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
        setImmediate().then(() => giveUp.abort(reason));
        return new Promise<string>(() => {});
      };
      const claim = () => ledger.claim("id", "b", never, { signal: giveUp.signal });
      const fits = { expected: "the signal's reason", what: "a claim whose owner is never chosen" };
      await expectRefusal(claim, (error) => error === reason, fits);
      expectEqual((await ledger.claim("id", "b", chooser(B).choose)).kind, "new", "the same claim again");
    },
  },
];
