import { describe, expect, it } from "vitest";
import { AnswerBytes } from "../src/backend/answer-bytes.ts";
import { ByteBudget, freeBytes } from "../src/backend/byte-budget.ts";
import { announcedBytes } from "../src/core/backend-call.ts";

function collect(pieces: readonly string[], announced?: number): AnswerBytes {
  const answer = new AnswerBytes();
  for (const piece of pieces) answer.add(Buffer.from(piece), announced);
  return answer;
}

describe("an answer", () => {
  it.each([
    ["says nothing of its length", undefined],
    ["says its length", 9],
    ["says less than comes", 1],
    ["says far more than comes", 1_000_000_000],
  ])("is whole, in one piece, when it %s", (_state, announced) => {
    const answer = collect(["abc", "", "d", "efghi"], announced);
    expect([answer.length, answer.whole.toString()]).toEqual([9, "abcdefghi"]);
  });

  it("takes no more room than four times what came, whatever it says", () => {
    const { whole } = collect(["abc", "d"], 1_000_000_000);
    expect(whole.buffer.byteLength).toBe(16);
  });

  it("of one piece is not copied", () => {
    const piece = Buffer.from("abc");
    const answer = new AnswerBytes();
    answer.add(piece, undefined);
    expect(answer.whole.buffer).toBe(piece.buffer);
  });

  it("of no piece is empty", () => {
    expect(new AnswerBytes().whole).toHaveLength(0);
  });

  it.each([
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab", 62],
    ["HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\n", 42],
    ["HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", undefined],
    ["HTTP/1.1 200 OK\r\n\r\nContent-Length: 5\r\n\r\n", undefined],
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", undefined],
  ])("that begins with %j says that it has %s bytes", (begin, bytes) => {
    expect(announcedBytes(Buffer.from(begin))).toBe(bytes);
  });
});

it("an answer that is passed on counts, also above the limit, until it was", () => {
  const budget = new ByteBudget(100);
  const release = budget.hold(freeBytes + 150);
  expect(budget.take(1)).toBe(false);
  release();
  expect(budget.take(100)).toBe(true);
  expect(budget.hold(freeBytes)).toBeTypeOf("function");
  budget.give(100);
  expect(budget.take(100)).toBe(true);
});
