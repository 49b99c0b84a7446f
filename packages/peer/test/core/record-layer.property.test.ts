// However a stream of records is cut, it opens to the same; and whatever a man in the middle does to it, what comes out
// is a beginning of what was sent, and then an error.
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { FleetKey } from "../../src/core/fleet-key.ts";
import { deriveRecordKeys } from "../../src/core/record-keys.ts";
import { RecordOpener, RecordSealer } from "../../src/core/record-layer.ts";
import { PeerRecordError } from "../../src/errors.ts";
import { cutAt } from "../support/splits.ts";

const isLong = inject("size") === "long";
const seed = inject("seed");
const fuzzing = { numRuns: isLong ? 100_000 : 1_000, seed };
/** Of each kind. */
const attacking = { numRuns: isLong ? 10_000 : 400, seed };

const counters = { recordsPerKey: 4 };
const keys = deriveRecordKeys({ key: new FleetKey(Buffer.alloc(32, 7)), transcript: "a property" });
const messages = fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { maxLength: 10 });
const cuts = fc.array(fc.nat(2_000), { maxLength: 12 });

/** The records of these messages, the end record last. */
function seal(list: readonly Uint8Array[], of = keys.dialler): Buffer[] {
  const sealer = new RecordSealer(of, counters);
  return [...list.map((message) => Buffer.concat(sealer.seal(message))), Buffer.from(sealer.end())];
}

/** What comes out of a stream in pieces, and what ended it. */
function open(pieces: readonly Uint8Array[]): { data: Buffer; error: unknown } {
  const opener = new RecordOpener(keys.dialler, counters);
  const data: Uint8Array[] = [];
  let error: unknown;
  try {
    for (const piece of pieces) data.push(...opener.push(piece).data);
    opener.finish();
  } catch (thrown) {
    error = thrown;
  }
  return { data: Buffer.concat(data), error };
}

test("a stream cut anywhere opens to what was sealed", () => {
  fc.assert(
    fc.property(messages, cuts, (list, places) => {
      const { data, error } = open(cutAt(Buffer.concat(seal(list)), places));
      expect(error).toBeUndefined();
      expect(data.equals(Buffer.concat(list))).toBe(true);
    }),
    fuzzing,
  );
});

test("any bytes at all are refused with an error of ours, and nothing comes out of them", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (bytes, places) => {
      const { data, error } = open(cutAt(bytes, places));
      expect(error).toBeInstanceOf(PeerRecordError);
      expect(data).toHaveLength(0);
    }),
    fuzzing,
  );
});

type Attack = (records: Buffer[], a: number, b: number) => Buffer;
const at = <Item>(list: readonly Item[], place: number): [Item, number] => {
  const index = place % list.length;
  return [list[index] as Item, index];
};
const joinedWithout = (records: readonly Buffer[], index: number, ...instead: Buffer[]) =>
  Buffer.concat([...records.slice(0, index), ...instead, ...records.slice(index + 1)]);

const attacks: Record<string, Attack> = {
  "flips a bit": (records, a, b) => {
    const stream = Buffer.concat(records);
    const index = a % stream.length;
    stream[index] = (stream[index] ?? 0) ^ (1 << (b % 8));
    return stream;
  },
  "drops a record": (records, a) => joinedWithout(records, at(records, a)[1]),
  "drops bytes": (records, a, b) => {
    const stream = Buffer.concat(records);
    const index = a % stream.length;
    return Buffer.concat([stream.subarray(0, index), stream.subarray(index + 1 + (b % 40))]);
  },
  "repeats a record": (records, a, b) => {
    const [record] = at(records, a);
    const where = b % (records.length + 1);
    return Buffer.concat([...records.slice(0, where), record, ...records.slice(where)]);
  },
  "exchanges two records": (records, a, b) => {
    const [one, i] = at(records, a);
    const j = (i + 1 + (b % (records.length - 1))) % records.length;
    const changed = [...records];
    changed[i] = at(records, j)[0];
    changed[j] = one;
    return Buffer.concat(changed);
  },
  "inserts bytes": (records, a, b) => {
    const stream = Buffer.concat(records);
    const index = a % (stream.length + 1);
    const bytes = Buffer.alloc(1 + (b % 50), String(a));
    return Buffer.concat([stream.subarray(0, index), bytes, stream.subarray(index)]);
  },
  "inserts a record of the other direction": (records, a) => {
    const [foreign = Buffer.alloc(0)] = seal([Buffer.from("foreign")], keys.listener);
    const where = a % (records.length + 1);
    return Buffer.concat([...records.slice(0, where), foreign, ...records.slice(where)]);
  },
  "puts the end early": (records, a) => {
    const end = records.at(-1) ?? Buffer.alloc(0);
    return Buffer.concat([...records.slice(0, a % (records.length - 1)), end]);
  },
  "cuts the stream": (records, a) => {
    const stream = Buffer.concat(records);
    return stream.subarray(0, a % stream.length);
  },
};

const places = fc.nat(1_000_000);
const atLeastOne = fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { minLength: 1, maxLength: 10 });

test.each(Object.entries(attacks))("who %s is found out before a wrong byte comes out", (_what, attack) => {
  fc.assert(
    fc.property(atLeastOne, places, places, cuts, (list, a, b, pieces) => {
      const records = seal(list);
      const sent = Buffer.concat(records);
      const received = attack(records.map(Buffer.from), a, b);
      // An insertion can happen to leave the stream as it is: the same bytes beside themselves.
      fc.pre(!received.equals(sent));
      const { data, error } = open(cutAt(received, pieces));
      expect(error).toBeInstanceOf(PeerRecordError);
      const meant = Buffer.concat(list);
      expect(data.equals(meant.subarray(0, data.length))).toBe(true);
    }),
    attacking,
  );
});
