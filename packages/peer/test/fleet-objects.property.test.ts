// What is read from the store may be anything.
import fc from "fast-check";
import { expect, inject, it } from "vitest";
import { FleetKey } from "../src/core/fleet-key.ts";
import { KeyRotationError, NodeRecordError } from "../src/errors.ts";
import { formatKeyRotation, parseKeyRotation } from "../src/key-rotation-record.ts";
import { formatNodeRecord, type NodeRecord, nodeRecordKey, parseNodeRecord } from "../src/node-record.ts";

const settings = { seed: inject("seed"), numRuns: inject("size") === "long" ? 100_000 : 2_000 };
const hex = (digits: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: digits, maxLength: digits });
const whole = fc.maxSafeNat();

const record: fc.Arbitrary<NodeRecord> = fc.record(
  {
    node: fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/),
    addr: fc.oneof(
      fc.constant(""),
      fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 65_535 })).map((it) => it.join(":")),
    ),
    expiresMs: whole,
    peerProtocol: fc.integer({ min: 0, max: 65_535 }),
    probePublicKey: hex(64),
    extensions: fc.array(fc.stringMatching(/^[a-z0-9-]{1,64}$/), { maxLength: 4 }),
    load: fc.record({
      sampledMs: whole,
      residentCells: whole,
      hostWebsockets: whole,
      rssBytes: whole,
      inUseBytes: fc.option(whole),
      cpuPercentX100: whole,
      openFds: whole,
      fdLimit: whole,
      pressured: fc.boolean(),
      shedCells: whole,
      restoring: whole,
    }),
    peerKeys: fc.record({ signs: hex(16), accepts: fc.array(hex(16), { minLength: 1, maxLength: 4 }) }),
    roadAlias: fc.nat(255).map((last) => `127.77.0.${last}`),
  },
  { requiredKeys: ["node", "addr", "expiresMs", "peerProtocol", "probePublicKey", "extensions"] },
);

/** Text in which a few characters were changed. */
const damaged = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.array(fc.tuple(fc.nat(), fc.string({ unit: "binary", maxLength: 3 })), { maxLength: 3 }))
    .map(([whole, changes]) =>
      changes.reduce((now, [at, put]) => {
        const place = now.length === 0 ? 0 : at % now.length;
        return now.slice(0, place) + put + now.slice(place + 1);
      }, whole),
    );

it("every record reads as it was written", () => {
  fc.assert(
    fc.property(record, (each) => {
      const bytes = new TextEncoder().encode(formatNodeRecord(each));
      expect(parseNodeRecord(nodeRecordKey(each.node), bytes)).toEqual(each);
    }),
    settings,
  );
});

it("bytes that are no record are refused as such, and as nothing else", () => {
  const text = fc.oneof(damaged(record.map(formatNodeRecord)), fc.json());
  const bytes = fc.oneof(
    fc.uint8Array(),
    text.map((each) => new TextEncoder().encode(each)),
  );
  fc.assert(
    fc.property(bytes, (each) => {
      try {
        parseNodeRecord("nodes/a.json", each);
      } catch (error) {
        expect(error).toBeInstanceOf(NodeRecordError);
      }
    }),
    settings,
  );
});

it("a rotation reads as it was written, and text that is none is refused without being shown", () => {
  const keys = fc.tuple(hex(64), hex(64)).filter(([next, previous]) => next !== previous);
  const phase = fc.constantFrom("accept" as const, "sign" as const, "retire" as const);
  const rotation = fc.tuple(phase, hex(32), keys).map(([at, id, [next, previous]]) => ({
    phase: at,
    id,
    next: new FleetKey(Buffer.from(next, "hex")),
    previous: new FleetKey(Buffer.from(previous, "hex")),
  }));
  fc.assert(
    fc.property(rotation, (each) => {
      const text = formatKeyRotation(each);
      expect(formatKeyRotation(parseKeyRotation(text))).toBe(text);
    }),
    settings,
  );
  fc.assert(
    fc.property(fc.oneof(damaged(rotation.map(formatKeyRotation)), fc.json()), (text) => {
      try {
        parseKeyRotation(text);
      } catch (error) {
        expect(error).toBeInstanceOf(KeyRotationError);
        expect(String(error)).not.toMatch(/[0-9a-f]{32}/);
      }
    }),
    settings,
  );
});
