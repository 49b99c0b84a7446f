/** Records as they lie in the store: corrupt ones, entries, restoring, capacity. */
import { formatRecord } from "../core/record.ts";
import type { LedgerEntry } from "../ledger.ts";
import { chooser, expectCode, expectEqual } from "./expectations.ts";
import type { Rule } from "./scene.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";
const GOOD = formatRecord({ backend: A, bodyHash: "blake3:00" });

/** Each is taken and unreadable, whatever its store makes of it. */
const CORRUPT: readonly [string, string][] = [
  ["empty", ""],
  ["cut off", GOOD.slice(0, -10)],
  ["of another version", GOOD.replace(":1,", ":2,")],
  ["with an unknown member", GOOD.replace("}", ',"at":1}')],
  ["with a member missing", '{"version":1,"backend":"http://n"}'],
  ["with a member twice", GOOD.replace("{", '{"version":1,')],
  ["with an owner that is no origin", GOOD.replace("http:", "https:")],
  ["too long", GOOD + " ".repeat(4_097 - GOOD.length)],
  ["with text behind it", `${GOOD}x`],
];

export const recordRules: readonly Rule[] = [
  {
    name: "a corrupt record is an error for its id, stays as it is, and never counts as absent",
    needs: ["plant"],
    async run(scene) {
      const ledger = await scene.open();
      for (const [what, text] of CORRUPT) {
        const id = `id ${what}`;
        await scene.plant(id, Buffer.from(text));
        const key = scene.digest.key(id);
        const calls = chooser(B);
        const corrupt = "CELLKIT_LEDGER_CORRUPT";
        await expectCode(() => ledger.lookup(id), corrupt, `lookup of a record ${what}`);
        await expectCode(() => ledger.claim(id, "b", calls.choose), corrupt, `claim of a record ${what}`);
        const owner = { backend: B, bodyHash: "blake3:00" };
        await expectCode(() => ledger.restore(key, owner), corrupt, `restore over a record ${what}`);
        expectEqual(calls.callCount, 0, `calls of chooseOwner for a record ${what}`);
        const entry = await ledger.entry(key);
        expectEqual([entry?.key, entry?.owner], [key, undefined], `entry of a record ${what}`);
        expectEqual(typeof entry?.problem, "string", `the entry's problem with a record ${what}`);
        await expectCode(() => ledger.lookup(id), corrupt, `lookup of a record ${what} after all of this`);
      }
      expectEqual(await ledger.count(), CORRUPT.length, "count: a corrupt record is one");
    },
  },
  {
    name: "white space and the order of a record's members do not matter",
    needs: ["plant"],
    async run(scene) {
      const ledger = await scene.open();
      const bodyHash = scene.digest.bodyHash("b");
      await scene.plant(
        "id",
        Buffer.from(`{ "body_hash": "${bodyHash}",\n "backend":"${A}", "version" :1}\n`),
      );
      const owner = { backend: A, bodyHash };
      expectEqual(await ledger.claim("id", "b", chooser(B).choose), { kind: "existing", owner }, "the claim");
    },
  },
  {
    name: "entries are all records, by their keys",
    async run(scene) {
      const ledger = await scene.open();
      const ids = ["a", "b", "c"];
      for (const id of ids) await ledger.claim(id, id, chooser(A).choose);
      const found = new Map<string, LedgerEntry>();
      for await (const entry of ledger.entries()) found.set(entry.key, entry);
      for (const id of ids) {
        const key = scene.digest.key(id);
        const { modifiedMs, ...entry } = found.get(key) ?? { modifiedMs: 0 };
        const owner = { backend: A, bodyHash: scene.digest.bodyHash(id) };
        expectEqual(
          { problem: undefined, ...entry },
          { key, owner, problem: undefined, marked: false },
          `the entry of ${id}`,
        );
        expectEqual(
          modifiedMs > 1_600_000_000_000,
          true,
          `modifiedMs (${modifiedMs}) is in Unix milliseconds`,
        );
      }
      expectEqual(found.size, ids.length, "how many entries");
      expectEqual(await ledger.entry(scene.digest.key("d")), undefined, "the entry of an unknown key");
      await expectCode(() => ledger.entry("D"), "CELLKIT_LEDGER_OPTION", "an entry by what is no key");
    },
  },
  {
    name: "restoring adds a binding once, and never over another",
    async run(scene) {
      const ledger = await scene.open();
      const key = scene.digest.key("id");
      const owner = { backend: A, bodyHash: scene.digest.bodyHash("b") };
      expectEqual(await ledger.restore(key, owner), "added", "the first time");
      expectEqual(await ledger.restore(key, owner), "present", "the second time");
      expectEqual(await ledger.restore(key, { ...owner, backend: B }), "conflict", "for another owner");
      const other = { ...owner, bodyHash: scene.digest.bodyHash("other bytes") };
      expectEqual(await ledger.restore(key, other), "conflict", "for other bytes");
      expectEqual(await ledger.lookup("id"), owner, "the owner");
      expectEqual(await ledger.claim("id", "b", chooser(B).choose), { kind: "existing", owner }, "its claim");
    },
  },
  {
    name: "of several that restore other bindings of one key at once exactly one adds",
    async run(scene) {
      const ledgers = await scene.openSeveral(4);
      const key = scene.digest.key("id");
      const answers = await Promise.all(
        ledgers.map((ledger, index) => ledger.restore(key, { backend: `http://n${index}`, bodyHash: "h" })),
      );
      expectEqual(answers.toSorted(), ["added", "conflict", "conflict", "conflict"], "the answers");
      const added = { backend: `http://n${answers.indexOf("added")}`, bodyHash: "h" };
      for (const ledger of ledgers) expectEqual(await ledger.lookup("id"), added, "the owner that is kept");
    },
  },
  {
    name: "what could not be read again is not restored",
    async run(scene) {
      const ledger = await scene.open();
      const key = scene.digest.key("id");
      const owner = { backend: A, bodyHash: "blake3:00" };
      const refusals: [string, string, typeof owner][] = [
        ["a key in upper case", key.toUpperCase(), owner],
        ["a short key", key.slice(1), owner],
        ["an owner that is no origin", key, { ...owner, backend: "https://n" }],
        ["a record that is too long", key, { ...owner, bodyHash: "x".repeat(4_096) }],
        ["a record without a body hash", key, { backend: A } as typeof owner],
        ["an empty body hash", key, { ...owner, bodyHash: "" }],
        ["a body hash with a NUL", key, { ...owner, bodyHash: "a\0b" }],
      ];
      for (const [what, badKey, badOwner] of refusals)
        await expectCode(() => ledger.restore(badKey, badOwner), "CELLKIT_LEDGER_OPTION", what);
      expectEqual(await ledger.count(), 0, "count");
    },
  },
  {
    name: "at capacity new ids are refused without choosing an owner, and everything else works",
    needs: ["capacity"],
    async run(scene) {
      const ledger = await scene.open({ capacity: 2 });
      expectEqual(ledger.capacity, 2, "capacity");
      for (const id of ["a", "b"]) await ledger.claim(id, "b", chooser(A).choose);
      const calls = chooser(B);
      expectEqual(await ledger.claim("c", "b", calls.choose), { kind: "full" }, "a third id");
      expectEqual((await ledger.claim("a", "b", calls.choose)).kind, "existing", "the first id");
      expectEqual(await ledger.claim("a", "other bytes", calls.choose), { kind: "conflict" }, "other bytes");
      expectEqual(calls.callCount, 0, "calls of chooseOwner");
      const owner = { backend: A, bodyHash: scene.digest.bodyHash("b") };
      expectEqual(await ledger.restore(scene.digest.key("c"), owner), "full", "restoring a third");
      expectEqual(await ledger.restore(scene.digest.key("a"), owner), "present", "restoring the first");
      expectEqual([await ledger.count(), await ledger.lookup("c")], [2, undefined], "count, and the third");
    },
  },
];
