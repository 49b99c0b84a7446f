import { describe, expect, test } from "vitest";
import { closeFrame, echoCode } from "../../src/core/close-frame.ts";
import { FrameScanner } from "../../src/core/frame-scanner.ts";
import { OptionError } from "../../src/errors.ts";
import { frame } from "../support/frames.ts";
import { everyCut } from "../support/splits.ts";

/** Offsets of the frame ends that a scanner finds. */
function boundaries(scanner: FrameScanner, pieces: readonly Uint8Array[]): number[] {
  const ends: number[] = [];
  let base = 0;
  for (const piece of pieces) {
    let offset = 0;
    while (offset < piece.length) {
      offset = scanner.advance(piece, offset);
      if (scanner.atBoundary) ends.push(base + offset);
    }
    base += piece.length;
  }
  return ends;
}

const text = Buffer.from("hello");
const rows: [string, Buffer[]][] = [
  ["an empty frame", [frame({ payload: Buffer.alloc(0) })]],
  ["a short frame", [frame({ payload: text })]],
  ["a masked frame", [frame({ payload: text, masked: true })]],
  ["a masked empty frame", [frame({ opcode: 9, payload: Buffer.alloc(0), masked: true })]],
  ["a frame of 125 bytes", [frame({ payload: Buffer.alloc(125) })]],
  ["a frame of 126 bytes", [frame({ payload: Buffer.alloc(126) })]],
  ["a masked frame of 300 bytes", [frame({ payload: Buffer.alloc(300), masked: true })]],
  ["a 64-bit length", [frame({ payload: text, lengthForm: 8 })]],
  [
    "fragments with a ping between",
    [
      frame({ final: false, payload: text }),
      frame({ opcode: 9, payload: text }),
      frame({ opcode: 0, payload: text }),
    ],
  ],
];

describe("a frame scanner finds, however the input is cut, the end of", () => {
  test.each(rows)("%s", (_, frames) => {
    const ends = frames.map((_, i) => frames.slice(0, i + 1).reduce((sum, one) => sum + one.length, 0));
    for (const pieces of everyCut(Buffer.concat(frames))) {
      const scanner = new FrameScanner();
      expect(boundaries(scanner, pieces)).toEqual(ends);
      expect(scanner.closed).toBe(false);
    }
  });

  test.each([
    ["with code and reason", Buffer.from([0x0f, 0xa1, 0x61, 0x62]), false, 4001],
    ["masked", Buffer.from([0x03, 0xe8]), true, 1000],
    ["masked, with a reason", Buffer.from([0x03, 0xf4, 0x61, 0x62, 0x63]), true, 1012],
    ["without a code", Buffer.alloc(0), false, 1005],
    ["with half a code", Buffer.from([0x03]), true, 1005],
  ])("a close frame %s, and its code", (_, payload, masked, code) => {
    const ping = frame({ opcode: 9, payload: Buffer.from([1, 2, 3]), masked });
    const close = frame({ opcode: 8, payload, masked });
    for (const pieces of everyCut(Buffer.concat([ping, close]))) {
      const scanner = new FrameScanner();
      expect(boundaries(scanner, pieces)).toEqual([ping.length, ping.length + close.length]);
      expect(scanner).toMatchObject({ closed: true, closeCode: code, atBoundary: true });
    }
  });
});

test("a close frame counts only once it passed whole", () => {
  const close = frame({ opcode: 8, payload: Buffer.from([0x03, 0xe8]) });
  const scanner = new FrameScanner();
  scanner.advance(close.subarray(0, 3), 0);
  expect(scanner).toMatchObject({ closed: false, atBoundary: false });
  scanner.advance(close.subarray(3), 0);
  expect(scanner.closed).toBe(true);
});

test("the first close frame's code stays", () => {
  const scanner = new FrameScanner();
  boundaries(scanner, [
    frame({ opcode: 8, payload: Buffer.from([0x03, 0xe8]) }),
    frame({ opcode: 8, payload: Buffer.from([0x03, 0xe9]) }),
  ]);
  expect(scanner.closeCode).toBe(1000);
});

test("after a length that cannot be counted there is no boundary any more", () => {
  const endless = Buffer.from([0x82, 127, 0x00, 0x20, 0, 0, 0, 0, 0, 0, 0x82, 0]);
  for (const pieces of everyCut(endless)) {
    const scanner = new FrameScanner();
    expect(boundaries(scanner, pieces)).toEqual([]);
    expect(scanner.advance(Buffer.from([0x88, 0]), 0)).toBe(2);
    expect(scanner).toMatchObject({ atBoundary: false, closed: false });
  }
});

test("a close frame of ours is one that the scanner reads", () => {
  const scanner = new FrameScanner();
  const bytes = closeFrame(1012, "owner unavailable");
  expect(Buffer.from(bytes).toString("latin1")).toBe("\x88\x13\x03\xf4owner unavailable");
  expect(scanner.advance(bytes, 0)).toBe(bytes.length);
  expect(scanner.closeCode).toBe(1012);
});

test.each([999, 1004, 1005, 1006, 1015, 5000, 1000.5])("no close frame has the code %d", (code) => {
  expect(() => closeFrame(code, "")).toThrow(OptionError);
});

test("a reason has at most 123 bytes", () => {
  expect(closeFrame(1000, "é".repeat(61))).toHaveLength(4 + 122);
  expect(() => closeFrame(1000, "é".repeat(62))).toThrow("reason has 124 bytes");
});

test.each([
  [1005, 1000],
  [1000, 1000],
  [4999, 4999],
  [1006, 1002],
  [42, 1002],
])("the close code %d is answered with %d", (code, answer) => {
  expect(echoCode(code)).toBe(answer);
});
