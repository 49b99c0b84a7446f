import { describe, expect, it } from "vitest";
import { chunks, httpMessages, lengthPrefixed, lines, type MessageEndFn } from "../../src/index.ts";

const get = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const post = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
const chunked =
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n";
const noTrailer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";

describe.each<[string, MessageEndFn, string[]]>([
  ["lines", lines, ["one\n", "\n", "two\r\n"]],
  ["lengths", lengthPrefixed(1, 1), ["Q\0\0\0\x06ab", "Z\0\0\0\x04"]],
  ["HTTP", httpMessages, [get, post, chunked, noTrailer, get]],
])("%s", (_name, isWhole, messages) => {
  it("are found wherever the bytes are split", () => {
    const whole = Buffer.from(messages.join(""), "latin1");
    for (let split = 0; split <= whole.length; split++) {
      const found: string[] = [];
      let rest: Buffer = Buffer.alloc(0);
      for (const piece of [whole.subarray(0, split), whole.subarray(split)]) {
        rest = Buffer.concat([rest, piece]);
        for (;;) {
          const length = rest.length === 0 ? undefined : isWhole(rest);
          if (length === undefined) break;
          found.push(rest.toString("latin1", 0, length));
          rest = rest.subarray(length);
        }
      }
      expect(found).toEqual(messages);
    }
  });
});

it("a chunk is whatever came", () => {
  expect(chunks(Buffer.from("abc"))).toBe(3);
});
