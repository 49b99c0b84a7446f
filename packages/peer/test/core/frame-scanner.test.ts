import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { FrameScanner, ownerUnavailableFrame } from "../../src/core/frame-scanner.ts";
import { cutAt, everyCut } from "../support/splits.ts";

const fuzzing = { numRuns: inject("size") === "long" ? 100_000 : 2_000, seed: inject("seed") };

/** A frame as a server sends it; `long` writes a length in a longer form than needed, which is not forbidden to scan. */
function frame(
  opcode: number,
  length: number,
  form: 1 | 2 | 8 = length < 126 ? 1 : length < 65_536 ? 2 : 8,
): Buffer {
  const header = Buffer.alloc(form === 1 ? 2 : 2 + form);
  header[0] = 0x80 | opcode;
  if (form === 1) header[1] = length;
  else if (form === 2) header.writeUInt16BE(length, 2);
  else header.writeBigUInt64BE(BigInt(length), 2);
  if (form !== 1) header[1] = form === 2 ? 126 : 127;
  return Buffer.concat([header, Buffer.alloc(length, 0x88)]);
}

function scan(pieces: readonly Uint8Array[]): FrameScanner {
  const scanner = new FrameScanner();
  for (const piece of pieces) scanner.scan(piece);
  return scanner;
}

test("the close frame is 1012 with its reason, unmasked", () => {
  const bytes = Buffer.from(ownerUnavailableFrame);
  expect(bytes[0]).toBe(0x88);
  expect(bytes[1]).toBe(bytes.length - 2);
  expect(bytes.readUInt16BE(2)).toBe(1012);
  expect(bytes.toString("utf8", 4)).toBe("owner unavailable");
});

test("a new connection stands at a boundary", () => {
  expect(new FrameScanner()).toMatchObject({ atBoundary: true, closed: false });
});

test.each([
  ["an empty text frame", frame(1, 0)],
  ["125 bytes", frame(2, 125)],
  ["126 bytes", frame(2, 126)],
  ["65,536 bytes in the 8-byte form", frame(2, 65_536)],
  ["a ping", frame(9, 3)],
  ["a short length in a long form", frame(1, 3, 8)],
])("%s: at a boundary before and after, nowhere between", (_what, bytes) => {
  const places = bytes.length > 500 ? [1, 2, 9, 10, 11, 40_000, bytes.length - 1] : bytes.keys();
  for (const place of places) {
    if (place === 0) continue;
    expect(scan([bytes.subarray(0, place)]).atBoundary, `after ${place}`).toBe(false);
  }
  expect(scan([bytes])).toMatchObject({ atBoundary: true, closed: false });
});

test.each([
  ["without a code", frame(8, 0)],
  ["with a code", frame(8, 2)],
  ["with a reason", frame(8, 20)],
])("a close frame %s counts once it passed whole", (_what, bytes) => {
  expect(scan([bytes.subarray(0, -1)]).closed).toBe(false);
  for (const pieces of everyCut(Buffer.concat([frame(1, 5), bytes]))) {
    expect(scan(pieces)).toMatchObject({ atBoundary: true, closed: true });
  }
});

test("a close opcode inside a payload is no close", () => {
  expect(scan([frame(2, 300)]).closed).toBe(false);
});

test.each([
  ["a masked frame", Uint8Array.of(0x81, 0x85, 1, 2, 3, 4, 5, 6, 7, 8, 9)],
  ["a masked frame without payload", Uint8Array.of(0x81, 0x80, 0, 0, 0, 0, 0, 0, 0, 0)],
  ["a length above 2^53", Uint8Array.of(0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0)],
])("after %s nothing may be written any more", (_what, bytes) => {
  const scanner = scan([bytes]);
  scanner.scan(frame(1, 0));
  expect(scanner).toMatchObject({ atBoundary: false, closed: false });
});

test("frames cut anywhere are followed, and a cut between two of them is known as one", () => {
  const frames = fc.array(
    fc.tuple(
      fc.constantFrom(0, 1, 2, 8, 9, 10),
      fc.oneof(fc.nat(130), fc.integer({ min: 65_530, max: 65_540 })),
    ),
    { maxLength: 5 },
  );
  const property = fc.property(
    frames,
    fc.array(fc.nat(200_000), { maxLength: 8 }),
    fc.nat(200_000),
    (list, cuts, stop) => {
      const parts = list.map(([opcode, length]) => frame(opcode, length));
      const all = Buffer.concat(parts);
      const place = stop % (all.length + 1);
      const scanner = scan(cutAt(all.subarray(0, place), cuts));
      let end = 0;
      let isBoundary = place === 0;
      let isClosed = false;
      for (const [i, part] of parts.entries()) {
        end += part.length;
        if (end <= place && list[i]?.[0] === 8) isClosed = true;
        if (end === place) isBoundary = true;
      }
      expect(scanner).toMatchObject({ atBoundary: isBoundary, closed: isClosed });
    },
  );
  fc.assert(property, fuzzing);
});

test("any bytes, cut anywhere, leave it in the same state", () => {
  const property = fc.property(
    fc.uint8Array({ maxLength: 300 }),
    fc.array(fc.nat(300), { maxLength: 8 }),
    (bytes, cuts) => {
      const whole = scan([bytes]);
      expect(scan(cutAt(bytes, cuts))).toMatchObject({ atBoundary: whole.atBoundary, closed: whole.closed });
    },
  );
  fc.assert(property, fuzzing);
});
