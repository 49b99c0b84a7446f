/** What several callers and several handles see at once. */
import type { Claim, StoredLedger } from "../ledger.ts";
import { chooser, expectEqual } from "./expectations.ts";
import type { Rule } from "./scene.ts";

const HANDLE_COUNT = 4;
const CLAIM_COUNT = 96;

/** The claims of a race, spread over the handles; the owners tell the claimers apart. */
function race(
  ledgers: readonly StoredLedger[],
  count: number,
  claimOf: (index: number) => { id: string; body: string },
): Promise<Claim[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) => {
      const { id, body } = claimOf(index);
      const ledger = ledgers[index % ledgers.length] as StoredLedger;
      return ledger.claim(id, body, chooser(`http://claimer-${index}`).choose);
    }),
  );
}

const kinds = (claims: readonly Claim[]) => ({
  new: claims.filter(({ kind }) => kind === "new").length,
  existing: claims.filter(({ kind }) => kind === "existing").length,
  conflict: claims.filter(({ kind }) => kind === "conflict").length,
  full: claims.filter(({ kind }) => kind === "full").length,
});

const owners = (claims: readonly Claim[]) =>
  new Set(claims.flatMap((claim) => ("owner" in claim ? [claim.owner.backend] : [])));

export const raceRules: readonly Rule[] = [
  {
    name: `of ${CLAIM_COUNT} claims of one id at once exactly one is new, and all see its owner`,
    async run(scene) {
      const ledgers = await scene.openSeveral(HANDLE_COUNT);
      const claims = await race(ledgers, CLAIM_COUNT, () => ({ id: "id", body: "b" }));
      expectEqual(kinds(claims), { new: 1, existing: CLAIM_COUNT - 1, conflict: 0, full: 0 }, "the answers");
      expectEqual(owners(claims).size, 1, "how many owners they name");
      const kept = await ledgers[0]?.lookup("id");
      expectEqual(new Set([kept?.backend]), owners(claims), "the owner that is kept");
    },
  },
  {
    name: "claims of one id with the same owner at once are told apart: one is new",
    async run(scene) {
      const ledgers = await scene.openSeveral(HANDLE_COUNT);
      const claims = await Promise.all(
        ledgers.flatMap((ledger) =>
          Array.from({ length: 4 }, () => ledger.claim("id", "b", chooser("http://same").choose)),
        ),
      );
      expectEqual(
        kinds(claims),
        { new: 1, existing: claims.length - 1, conflict: 0, full: 0 },
        "the answers",
      );
    },
  },
  {
    name: "of two bodies that race for one id one wins, and the other conflicts everywhere",
    async run(scene) {
      const ledgers = await scene.openSeveral(HANDLE_COUNT);
      const count = 32;
      const claims = await race(ledgers, count, (index) => ({ id: "id", body: `body ${index % 2}` }));
      const expected = { new: 1, existing: count / 2 - 1, conflict: count / 2, full: 0 };
      expectEqual(kinds(claims), expected, "the answers");
    },
  },
  {
    name: `${CLAIM_COUNT} new ids at once are all new`,
    async run(scene) {
      const ledgers = await scene.openSeveral(HANDLE_COUNT);
      const claims = await race(ledgers, CLAIM_COUNT, (index) => ({ id: `id-${index}`, body: "b" }));
      expectEqual(kinds(claims), { new: CLAIM_COUNT, existing: 0, conflict: 0, full: 0 }, "the answers");
      expectEqual(await ledgers[0]?.count(), CLAIM_COUNT, "count");
      const backends = claims.map((claim) => "owner" in claim && claim.owner.backend);
      expectEqual(
        backends,
        backends.map((_, index) => `http://claimer-${index}`),
        "the owners",
      );
    },
  },
  {
    name: "what was chosen is dropped when another claimed the id meanwhile",
    async run(scene) {
      const [slow, quick] = (await scene.openSeveral(2)) as [StoredLedger, StoredLedger];
      for (const body of ["b", "other bytes"]) {
        const id = `id of ${body}`;
        const claim = await slow.claim(id, body, async () => {
          await quick.claim(id, "b", chooser("http://quick").choose);
          return "http://slow";
        });
        const owner = { backend: "http://quick", bodyHash: scene.digest.bodyHash("b") };
        const expected = body === "b" ? { kind: "existing", owner } : { kind: "conflict" };
        expectEqual(claim, expected, "the claim whose choice took long");
        expectEqual(await slow.lookup(id), owner, "the owner that is kept");
      }
    },
  },
  {
    name: "an owner is chosen outside of any lock: meanwhile the same handle claims and looks up",
    async run(scene) {
      const ledger = await scene.open();
      const claim = await ledger.claim("slow", "b", async () => {
        const inner = await ledger.claim("quick", "b", chooser("http://quick").choose);
        expectEqual(inner.kind, "new", "a claim within the choice for another id");
        expectEqual(await ledger.lookup("slow"), undefined, "lookup of the id that is being claimed");
        return "http://slow";
      });
      expectEqual(claim.kind, "new", "the claim whose choice took long");
    },
  },
  {
    name: "claims at once never go above the capacity, and use it wholly",
    needs: ["capacity"],
    async run(scene) {
      const ledgers = await scene.openSeveral(HANDLE_COUNT, { capacity: 5 });
      const claims = await race(ledgers, 24, (index) => ({ id: `id-${index}`, body: "b" }));
      expectEqual(kinds(claims), { new: 5, existing: 0, conflict: 0, full: 19 }, "the answers");
      expectEqual(await ledgers[0]?.count(), 5, "count");
    },
  },
];
