// Whatever the input is and however it is cut, the trackers find the same; and nothing but a refusal is thrown.
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { FrameScanner } from "../../src/core/frame-scanner.ts";
import { frame } from "../support/frames.ts";
import { bytes, cutAt } from "../support/splits.ts";
import { trackRequests, trackResponse } from "../support/tracked.ts";

const runs = { numRuns: inject("size") === "long" ? 20_000 : 1_000, seed: inject("seed") };

const cuts = fc.array(fc.nat(5_000), { maxLength: 12 });
const fieldName = fc.constantFrom(
  "A",
  "Content-Length",
  "content-length",
  "Transfer-Encoding",
  "Connection",
  "Expect",
  "Upgrade",
  "Host",
);
const fieldValue = fc.constantFrom(
  "",
  "0",
  "3",
  "17",
  "chunked",
  "close",
  "websocket",
  "Upgrade, close",
  "100-continue",
  "x y\tz",
  "[::1]:80",
);
const fields = fc
  .array(fc.tuple(fieldName, fieldValue), { maxLength: 4 })
  .map((list) => list.map(([name, value]) => `${name}: ${value}\r\n`).join(""));
const chunks = fc
  .array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 3 })
  .map(
    (list) => `${list.map((one) => `${one.length.toString(16)};x\r\n${one}\r\n`).join("")}0\r\nT: 1\r\n\r\n`,
  );
const body = fc.oneof(fc.constant(""), fc.constant("abc"), chunks, fc.string({ maxLength: 60 }));
const requests = fc
  .array(
    fc.tuple(fc.constantFrom("GET", "POST", "CONNECT", "HEAD"), fc.constantFrom("1", "0"), fields, body),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) =>
    list
      .map(
        ([method, minor, head, rest]) =>
          `${method} /t HTTP/1.${minor}\r\n${minor === "1" ? "Host: h\r\n" : ""}${head}\r\n${rest}`,
      )
      .join(""),
  );
const responses = fc
  .array(fc.tuple(fc.constantFrom("100", "101", "103", "200", "204", "304", "500"), fields, body), {
    minLength: 1,
    maxLength: 3,
  })
  .map((list) => list.map(([status, head, rest]) => `HTTP/1.1 ${status} X\r\n${head}\r\n${rest}`).join(""));
/** Bytes that parsers stumble over, put at random places. */
const flaws = fc.array(
  fc.tuple(
    fc.nat(2_000),
    fc.constantFrom("\n", "\r", "\r\n", "\0", " ", ":", ";", "\t", "\x7f", "\xff", "0", "f"),
  ),
  { maxLength: 3 },
);

function flawed(text: string, edits: readonly (readonly [number, string])[]): Uint8Array {
  let result = text;
  for (const [place, piece] of edits) {
    const at = place % (result.length + 1);
    result = result.slice(0, at) + piece + result.slice(at + 1);
  }
  return bytes(result);
}

const mostlyRequests = fc.tuple(requests, flaws).map(([text, edits]) => flawed(text, edits));
const mostlyResponses = fc.tuple(responses, flaws).map(([text, edits]) => flawed(text, edits));
const garbage = fc.uint8Array({ maxLength: 3_000 });

test("requests, flawed or not, are tracked alike however they are cut", () => {
  fc.assert(
    fc.property(fc.oneof(mostlyRequests, garbage), cuts, (input, places) => {
      expect(trackRequests(cutAt(input, places))).toEqual(trackRequests([input]));
    }),
    runs,
  );
});

test("answers, flawed or not, are tracked alike however they are cut", () => {
  const method = fc.constantFrom("GET", "HEAD", "CONNECT");
  fc.assert(
    fc.property(fc.oneof(mostlyResponses, garbage), cuts, method, (input, places, asked) => {
      expect(trackResponse(cutAt(input, places), asked)).toEqual(trackResponse([input], asked));
    }),
    runs,
  );
});

test("a request that is refused stays refused whatever follows it", () => {
  fc.assert(
    fc.property(mostlyRequests, garbage, (input, more) => {
      const { last } = trackRequests([input]);
      fc.pre(last.startsWith("refused"));
      expect(trackRequests([input, more]).last).toBe(last);
    }),
    runs,
  );
});

/** Every offset that is a boundary, and the end. */
function scanAll(pieces: readonly Uint8Array[]): {
  ends: number[];
  code: number | undefined;
  atBoundary: boolean;
} {
  const scanner = new FrameScanner();
  const ends: number[] = [];
  let base = 0;
  for (const piece of pieces) {
    for (let offset = 0; offset < piece.length; ) {
      offset = scanner.advance(piece, offset);
      if (scanner.atBoundary) ends.push(base + offset);
    }
    base += piece.length;
  }
  return { ends, code: scanner.closeCode, atBoundary: scanner.atBoundary };
}

const frames = fc.array(
  fc.record({
    payload: fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.uint8Array({ minLength: 120, maxLength: 400 })),
    opcode: fc.constantFrom(0, 1, 2, 8, 9, 10),
    final: fc.boolean(),
    masked: fc.boolean(),
  }),
  { maxLength: 6 },
);

test("the ends of frames are found wherever the stream is cut", () => {
  fc.assert(
    fc.property(frames, cuts, (list, places) => {
      const encoded = list.map((parts) => frame({ ...parts, payload: Buffer.from(parts.payload) }));
      let end = 0;
      const ends = encoded.map((one) => {
        end += one.length;
        return end;
      });
      expect(scanAll(cutAt(Buffer.concat(encoded), places)).ends).toEqual(ends);
    }),
    runs,
  );
});

test("garbage is scanned alike however it is cut", () => {
  fc.assert(
    fc.property(garbage, cuts, (input, places) => {
      expect(scanAll(cutAt(input, places))).toEqual(scanAll([input]));
    }),
    runs,
  );
});
