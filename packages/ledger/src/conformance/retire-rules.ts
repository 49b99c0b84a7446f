/** How ids of retirable ledgers become free again, under a clock of the suite. */
import { chooser, expectCode, expectEqual } from "./expectations.ts";
import type { Rule } from "./scene.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";
const QUARANTINE = { quarantineMs: 600_000 };
const HOUR_MS = 3_600_000;

/** Options with a clock that runs as the real one (stores may take the times of records from theirs), and can be put forward. */
function clock() {
  const state = { aheadMs: 0 };
  return { state, options: { retirable: true, now: () => Date.now() + state.aheadMs } };
}

export const retireRules: readonly Rule[] = [
  {
    name: "a ledger that was not opened as retirable retires nothing",
    async run(scene) {
      const ledger = await scene.open();
      await ledger.claim("id", "b", chooser(A).choose);
      const code = "CELLKIT_LEDGER_NOT_RETIRABLE";
      await expectCode(() => ledger.retire("id", { quarantineMs: 0 }), code, "retire");
      await expectCode(() => ledger.retire("unknown", { quarantineMs: 0 }), code, "retire of an unknown id");
      await expectCode(() => ledger.sweep({ quarantineMs: 0 }), code, "sweep");
      expectEqual((await ledger.lookup("id"))?.backend, A, "the owner");
    },
  },
  {
    name: "a young record stays, is marked, and is swept when it is old",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const ledger = await scene.open(options);
      for (const id of ["a", "b"]) await ledger.claim(id, "b", chooser(A).choose);
      expectEqual(await ledger.retire("a", QUARANTINE), false, "retire of a young record");
      expectEqual((await ledger.lookup("a"))?.backend, A, "its owner");
      expectEqual((await ledger.claim("a", "b", chooser(B).choose)).kind, "existing", "its claim");
      expectEqual((await ledger.entry(scene.digest.key("a")))?.marked, true, "its mark");
      expectEqual((await ledger.entry(scene.digest.key("b")))?.marked, false, "the mark of the other");
      expectEqual(await ledger.sweep(QUARANTINE), 0, "sweep of a young record");
      state.aheadMs = HOUR_MS;
      expectEqual(
        await ledger.sweep(QUARANTINE),
        1,
        "sweep of an old record; an unmarked one is never swept",
      );
      expectEqual(await ledger.lookup("a"), undefined, "lookup of the swept id");
      expectEqual((await ledger.lookup("b"))?.backend, A, "the owner of the id without a mark");
      expectEqual(await ledger.count(), 1, "count");
      expectEqual(await ledger.sweep(QUARANTINE), 0, "sweep again");
    },
  },
  {
    name: "an old record is removed at once, and its id can be claimed with other bytes",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const [ledger, other] = await scene.openSeveral(2, options);
      await ledger?.claim("id", "b", chooser(A).choose);
      state.aheadMs = HOUR_MS;
      expectEqual(await ledger?.retire("id", QUARANTINE), true, "retire of an old record");
      expectEqual(await ledger?.retire("id", QUARANTINE), false, "retire again");
      expectEqual(await other?.lookup("id"), undefined, "lookup of another handle");
      const owner = { backend: B, bodyHash: scene.digest.bodyHash("other bytes") };
      const again = await other?.claim("id", "other bytes", chooser(B).choose);
      expectEqual(again, { kind: "new", owner }, "the claim of the freed id");
      expectEqual(await ledger?.lookup("id"), owner, "the owner that is kept");
    },
  },
  {
    name: "a mark does not pass on to the next record of its id",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const ledger = await scene.open(options);
      await ledger.claim("id", "b", chooser(A).choose);
      await ledger.retire("id", QUARANTINE);
      expectEqual((await ledger.entry(scene.digest.key("id")))?.marked, true, "its mark");
      state.aheadMs = HOUR_MS;
      expectEqual(await ledger.retire("id", QUARANTINE), true, "retire of the marked record, now old");
      await ledger.claim("id", "c", chooser(B).choose);
      expectEqual((await ledger.entry(scene.digest.key("id")))?.marked, false, "the mark of the next record");
      state.aheadMs = 3 * HOUR_MS;
      expectEqual(await ledger.sweep(QUARANTINE), 0, "sweep");
      expectEqual((await ledger.lookup("id"))?.backend, B, "the owner");
    },
  },
  {
    name: "a clock that was set back makes records young, never old",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const ledger = await scene.open(options);
      await ledger.claim("id", "b", chooser(A).choose);
      state.aheadMs = -HOUR_MS;
      for (const quarantineMs of [0, 600_000])
        expectEqual(await ledger.retire("id", { quarantineMs }), false, "retire");
      expectEqual(await ledger.sweep({ quarantineMs: 0 }), 0, "sweep");
      expectEqual((await ledger.lookup("id"))?.backend, A, "the owner");
    },
  },
  {
    name: "an unknown id is not retired, and leaves no mark that would meet a later record",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const ledger = await scene.open(options);
      expectEqual(await ledger.retire("id", QUARANTINE), false, "retire");
      await ledger.claim("id", "b", chooser(A).choose);
      state.aheadMs = HOUR_MS;
      expectEqual(await ledger.sweep(QUARANTINE), 0, "sweep");
      expectEqual(await ledger.count(), 1, "count");
    },
  },
  {
    name: "of several that retire one old id at once one is told so, and the others not",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const ledgers = await scene.openSeveral(4, options);
      await ledgers[0]?.claim("id", "b", chooser(A).choose);
      for (const ledger of ledgers) expectEqual((await ledger.lookup("id"))?.backend, A, "its owner");
      state.aheadMs = HOUR_MS;
      const answers = await Promise.all(ledgers.map((ledger) => ledger.retire("id", QUARANTINE)));
      expectEqual(answers.toSorted(), [false, false, false, true], "the answers");
      for (const ledger of ledgers) expectEqual(await ledger.lookup("id"), undefined, "lookup after it");
    },
  },
  {
    name: "a sweep leaves alone what was claimed anew after it began",
    needs: ["retiring"],
    async run(scene) {
      const { state, options } = clock();
      const ledgers = await scene.openSeveral(4, options);
      const ids = Array.from({ length: 24 }, (_, index) => `id-${index}`);
      const [first] = ledgers;
      for (const id of ids) await first?.claim(id, "b", chooser(A).choose);
      for (const id of ids)
        expectEqual(await first?.retire(id, QUARANTINE), false, "retire of a young record");
      state.aheadMs = HOUR_MS;
      // All see the marks at first. Whoever is done claims anew while others are still at it.
      const answers = await Promise.all(
        ledgers.map(async (ledger) => {
          await ledger.sweep({ quarantineMs: 0 });
          return Promise.all(ids.map((id) => ledger.claim(id, "c", chooser(B).choose)));
        }),
      );
      const made = answers.flat().filter(({ kind }) => kind === "new").length;
      expectEqual(made, ids.length, "how many claims after the sweeps are new: one of each id");
      for (const id of ids) expectEqual((await first?.lookup(id))?.backend, B, `the next owner of ${id}`);
    },
  },
  {
    name: "a corrupt record is not retired",
    needs: ["retiring", "plant"],
    async run(scene) {
      const { state, options } = clock();
      const ledger = await scene.open(options);
      await scene.plant("id", Buffer.from("{"));
      state.aheadMs = HOUR_MS;
      await expectCode(() => ledger.retire("id", QUARANTINE), "CELLKIT_LEDGER_CORRUPT", "retire");
      expectEqual(await ledger.sweep({ quarantineMs: 0 }), 0, "sweep");
      await expectCode(() => ledger.lookup("id"), "CELLKIT_LEDGER_CORRUPT", "lookup");
    },
  },
  {
    name: "a quarantine is a number of milliseconds, 0 or more",
    needs: ["retiring"],
    async run(scene) {
      const ledger = await scene.open({ retirable: true });
      for (const quarantineMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
        const what = `a quarantine of ${quarantineMs}`;
        await expectCode(() => ledger.retire("id", { quarantineMs }), "CELLKIT_LEDGER_OPTION", what);
        await expectCode(() => ledger.sweep({ quarantineMs }), "CELLKIT_LEDGER_OPTION", what);
      }
    },
  },
  {
    name: "retiring makes room in a full ledger",
    needs: ["retiring", "capacity"],
    async run(scene) {
      const { state, options } = clock();
      const ledger = await scene.open({ ...options, capacity: 1 });
      await ledger.claim("a", "b", chooser(A).choose);
      expectEqual(await ledger.retire("a", QUARANTINE), false, "retire of a young record");
      expectEqual((await ledger.claim("b", "b", chooser(A).choose)).kind, "full", "a second id: marks count");
      state.aheadMs = HOUR_MS;
      expectEqual(await ledger.sweep(QUARANTINE), 1, "sweep");
      expectEqual((await ledger.claim("b", "b", chooser(A).choose)).kind, "new", "the second id again");
    },
  },
];
