import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import { openForTest, temporaryDirectory } from "../support/posix-place.ts";
import { ReferenceBusyError, ReferenceLedger } from "../support/reference-ledger.ts";

const STEP_COUNT = inject("size") === "long" ? 50_000 : 10_000;
const CAPACITY = 60;
const ID_COUNT = 90;
const QUARANTINE_MS = 600_000;
/** Each step waits for the disk: on a machine whose disk is shared, for milliseconds. */
const TIME_LIMIT_MS = 900_000;

/** Another sequence for each seed (mulberry32). */
function randomInts(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** What must be true of an id, by the answers so far. */
type Known = { owner: string; body: string } | undefined;

it(
  `${STEP_COUNT} steps of three of ours and two originals on one directory: one owner an id, never above capacity, no record lost`,
  async () => {
    const directory = await temporaryDirectory();
    const options = { directory, capacity: CAPACITY, retirable: true };
    const ours = [await openForTest(options), await openForTest(options), await openForTest(options)];
    const digest = await loadDigest();
    const originals = [0, 1].map(() => new ReferenceLedger(directory, CAPACITY, digest));
    const random = randomInts(inject("seed"));
    const known = new Map<string, Known>();
    const tally = new Map<string, number>();
    let backend = 0;

    /** One step of a claim; answers as both kinds do. */
    const claim = async (id: string, body: string, by: number) => {
      backend += 1;
      const owner = `http://node-${backend}:8787`;
      const original = originals[by - ours.length];
      const answer =
        original === undefined
          ? await ours[by]?.claim(id, body, async () => owner)
          : original.claim(id, body, () => owner);
      return { answer, owner };
    };
    const check = (id: string, body: string, { answer, owner }: Awaited<ReturnType<typeof claim>>) => {
      tally.set(answer?.kind ?? "", (tally.get(answer?.kind ?? "") ?? 0) + 1);
      const record = known.get(id);
      switch (answer?.kind) {
        case "new":
          expect(record).toBeUndefined();
          known.set(id, { owner, body });
          break;
        case "existing":
          expect({ owner: answer.owner.backend, body }).toEqual(record);
          break;
        case "conflict":
          expect(record?.body).not.toBe(body);
          break;
        default:
          expect(record).toBeUndefined();
      }
    };

    for (let step = 0; step < STEP_COUNT; step += 1) {
      const id = `id-${random(ID_COUNT)}`;
      const body = `body ${random(10) === 0 ? "other" : "usual"}`;
      const by = random(5);
      const original = originals[by - ours.length];
      const mine = ours[by];
      const future = Date.now() + 2 * QUARANTINE_MS;
      const action = random(100);
      if (action < 60) {
        check(id, body, await claim(id, body, by));
      } else if (action < 75) {
        // Two of ours at once, for two ids or one; then whatever the order was, the answers must fit one.
        const other = random(3) === 0 ? id : `id-${random(ID_COUNT)}`;
        const both = await Promise.all([claim(id, body, 0), claim(other, body, 1)]);
        const order = both[1].answer?.kind === "new" && id === other ? [1, 0] : [0, 1];
        for (const at of order) {
          const one = both[at];
          if (one !== undefined) check(at === 0 ? id : other, body, one);
        }
      } else if (action < 90) {
        const found = original === undefined ? await mine?.lookup(id) : original.lookup(id);
        expect(found?.backend).toBe(known.get(id)?.owner);
      } else if (action < 97) {
        // Young: marked, and still the owner. The original's clock tells it the same.
        const removed =
          original === undefined
            ? await mine?.retire(id, { quarantineMs: QUARANTINE_MS })
            : original.retire(id, QUARANTINE_MS, Date.now());
        expect(removed).toBe(false);
      } else if (action < 98) {
        const removed =
          original === undefined
            ? await mine?.retire(id, { quarantineMs: 0 })
            : original.retire(id, QUARANTINE_MS, future);
        expect(removed).toBe(known.has(id));
        known.delete(id);
      } else if (action < 99 && random(4) === 0) {
        const marked = readdirSync(directory).filter((name) => name.endsWith(".retired")).length;
        const swept =
          original === undefined
            ? await mine?.sweep({ quarantineMs: 0 })
            : original.sweep(QUARANTINE_MS, future);
        expect(swept).toBe(marked);
        for (const gone of [...known.keys()])
          if (originals[0]?.lookup(gone) === undefined) known.delete(gone);
      } else {
        // An original that holds the lock for a while: ours waits, another original is refused.
        originals[0]?.locked(() => {
          expect(() => originals[1]?.claim(id, body, () => "http://late")).toThrow(ReferenceBusyError);
        });
      }
      expect(known.size).toBeLessThanOrEqual(CAPACITY);
    }

    const names = readdirSync(directory).filter((name) => name.endsWith(".json"));
    expect(names.sort()).toEqual([...known.keys()].map((id) => `${digest.key(id)}.json`).sort());
    for (const [id, record] of known) {
      expect(JSON.parse(readFileSync(join(directory, `${digest.key(id)}.json`), "utf8"))).toEqual({
        version: 1,
        backend: record?.owner,
        body_hash: digest.bodyHash(record?.body ?? ""),
      });
    }
    for (const kind of ["new", "existing", "conflict", "full"])
      expect(tally.get(kind) ?? 0).toBeGreaterThan(20);
  },
  TIME_LIMIT_MS,
);
