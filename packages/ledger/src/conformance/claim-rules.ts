/** What one caller sees: claims, lookups, and when an owner is chosen. */
import type { Claim } from "../ledger.ts";
import { chooser, expectCode, expectEqual, expectSameLedger } from "./expectations.ts";
import type { Rule } from "./scene.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";

/** Published values, so that every store names the records of an id alike. */
const KEY_OF_ID = "23c7cdb118db77dddc3b1324a1af6f7acca362571391ba35bb25e360e3a0e0d3";
const HASH_OF_ORIGINAL = "blake3:77d1f35e34a6c8c8e65a32cf0336e1fccc3fb4d1c611ebe09970dd2074abe5dc";

/** Nothing of these may ever name an owner. */
const NO_ORIGINS: readonly unknown[] = [
  "https://node1:9000",
  "http://user:pw@node1",
  "http://node1/path",
  "http://node1?x",
  "http://node1#f",
  "http://",
  "http://a b",
  "node1:8787",
  "HTTP://node1",
  `http://${"n".repeat(1_018)}`,
  "",
  undefined,
  42,
];

const ODD_IDS: readonly string[] = [
  "x",
  "../not-a-path",
  "UPPER and lower",
  "upper and lower",
  "ÄÖ \u{1f600} \u0000\n",
  "i".repeat(4_096),
];

export const claimRules: readonly Rule[] = [
  {
    name: "a new id is recorded for the chosen owner, under published hashes",
    async run(scene) {
      const ledger = await scene.open();
      const owner = { backend: A, bodyHash: HASH_OF_ORIGINAL };
      expectEqual(await ledger.lookup("id"), undefined, "lookup before any claim");
      const claim = await ledger.claim("id", "original", chooser(A).choose);
      expectEqual(claim, { kind: "new", owner }, "the first claim");
      expectEqual(await ledger.lookup("id"), owner, "lookup after the claim");
      const entry = await ledger.entry(KEY_OF_ID);
      expectEqual(entry?.owner, owner, "the entry of its key");
      expectEqual(await ledger.count(), 1, "count");
    },
  },
  {
    name: "the same bytes find the first owner, and no owner is chosen again",
    async run(scene) {
      const ledger = await scene.open();
      const first = await ledger.claim("id", "original", chooser(A).choose);
      const owner = { backend: A, bodyHash: HASH_OF_ORIGINAL };
      expectEqual(first.kind, "new", "the first claim");
      const again = chooser(B);
      for (const body of ["original", new TextEncoder().encode("original")])
        expectEqual(await ledger.claim("id", body, again.choose), { kind: "existing", owner }, "again");
      expectEqual(again.callCount, 0, "calls of chooseOwner for an id that is there");
    },
  },
  {
    name: "other bytes are a conflict, no owner is chosen, and nothing changes",
    async run(scene) {
      const ledger = await scene.open();
      await ledger.claim("id", "original", chooser(A).choose);
      const other = chooser(B);
      for (const body of ["changed", "", "original ", new Uint8Array(70_000)])
        expectEqual(await ledger.claim("id", body, other.choose), { kind: "conflict" }, "other bytes");
      expectEqual(other.callCount, 0, "calls of chooseOwner for a conflict");
      expectEqual(await ledger.lookup("id"), { backend: A, bodyHash: HASH_OF_ORIGINAL }, "the owner");
    },
  },
  {
    name: "another handle finds what one has claimed, also after that was closed",
    async run(scene) {
      const [first, second] = await scene.openSeveral(2);
      const claim = await first?.claim("id", "original", chooser(A).choose);
      const owner = { backend: A, bodyHash: HASH_OF_ORIGINAL };
      expectEqual(claim, { kind: "new", owner }, "the claim");
      expectEqual(await second?.lookup("id"), owner, "lookup of another handle");
      await first?.close();
      expectEqual(await second?.lookup("id"), owner, "lookup of another handle after the first was closed");
      const third = await scene.open();
      const again = await third.claim("id", "original", chooser(B).choose);
      expectEqual(again, { kind: "existing", owner }, "the same claim of a third");
      expectSameLedger([second, third], "two handles");
    },
  },
  {
    name: "an owner that cannot be chosen leaves nothing behind",
    async run(scene) {
      const ledger = await scene.open();
      const refuse = () => Promise.reject(new TypeError("no backend is healthy"));
      await expectCode(() => ledger.claim("id", "b", refuse), "CELLKIT_LEDGER_OWNER", "a rejected choice");
      const crash = () => {
        throw new TypeError("not even a promise");
      };
      await expectCode(() => ledger.claim("id", "b", crash), "CELLKIT_LEDGER_OWNER", "a choice that throws");
      expectEqual(await ledger.lookup("id"), undefined, "lookup after it");
      expectEqual(await ledger.count(), 0, "count after it");
      expectEqual((await ledger.claim("id", "b", chooser(A).choose)).kind, "new", "the next claim");
    },
  },
  {
    name: "an owner that is no http origin is refused and not recorded",
    async run(scene) {
      const ledger = await scene.open();
      for (const origin of NO_ORIGINS) {
        const claim = () => ledger.claim("id", "b", async () => origin as string);
        await expectCode(claim, "CELLKIT_LEDGER_OWNER", `the owner ${String(origin).slice(0, 40)}`);
      }
      expectEqual(await ledger.lookup("id"), undefined, "lookup after all of them");
    },
  },
  {
    name: "the text of an origin is kept as it is",
    async run(scene) {
      const ledger = await scene.open();
      for (const origin of [
        "http://Node1",
        "http://node1:80",
        "http://[fd00::1]:8787",
        `http://${"n".repeat(1_017)}`,
      ]) {
        await ledger.claim(origin, "b", chooser(origin).choose);
        expectEqual((await ledger.lookup(origin))?.backend, origin, "the owner");
      }
    },
  },
  {
    name: "ids are any text of 1 to 4,096 bytes, and each has its own record",
    async run(scene) {
      const ledger = await scene.open();
      for (const id of ODD_IDS) {
        const { kind } = await ledger.claim(id, `body of ${id}`, chooser(A).choose);
        expectEqual(kind, "new", `claim of ${JSON.stringify(id.slice(0, 40))}`);
      }
      expectEqual(await ledger.count(), ODD_IDS.length, "count");
      // Half of a surrogate pair has no UTF-8: all texts with one would be one id, or one body.
      for (const id of ["", "i".repeat(4_097), "ä".repeat(2_049), "\ud800", "a\udfff"]) {
        const what = `an id of ${Buffer.byteLength(id)} bytes${id.isWellFormed() ? "" : ", not well-formed,"}`;
        const claim = (): Promise<Claim> => ledger.claim(id, "b", chooser(A).choose);
        await expectCode(claim, "CELLKIT_LEDGER_OPTION", what);
        await expectCode(() => ledger.lookup(id), "CELLKIT_LEDGER_OPTION", what);
      }
      const halved = (): Promise<Claim> => ledger.claim("halved", "\ud800", chooser(A).choose);
      await expectCode(halved, "CELLKIT_LEDGER_OPTION", "a body that is not well-formed");
    },
  },
];
