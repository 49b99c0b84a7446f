import { describe, expect, test } from "vitest";
import { ResponseTracker } from "../../src/core/response-tracker.ts";
import { bytes, everyCut } from "../support/splits.ts";
import { trackResponse } from "../support/tracked.ts";

/** Name, method, head, body, and the state after them ("complete" unless only the connection can end the answer). */
const answers: [string, string, string, string, string][] = [
  ["a length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "abc", "complete"],
  ["a length of 0", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "complete"],
  [
    "chunks",
    "GET",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "1\r\na\r\n0\r\nT: x\r\n\r\n",
    "complete",
  ],
  ["HEAD with a length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "", "complete"],
  ["HEAD with chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", "complete"],
  ["204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", "", "complete"],
  ["304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", "", "complete"],
  ["no reason phrase", "GET", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\n", "a", "complete"],
  ["HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", "a", "complete"],
  ["no length", "GET", "HTTP/1.1 200 OK\r\n\r\n", "anything at all", "until close"],
  ["101", "GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "", "tunnel"],
  ["2xx to CONNECT", "CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "", "tunnel"],
  ["4xx to CONNECT", "CONNECT", "HTTP/1.1 407 No\r\nContent-Length: 1\r\n\r\n", "a", "complete"],
];

describe("a response tracker finds, however the input is cut, the end of", () => {
  test.each(answers)("%s", (_, method, head, body, last) => {
    const trailing = last === "until close" ? "" : "HTTP/1.1 200 OK\r\n";
    for (const pieces of everyCut(bytes(head + body + trailing))) {
      const track = trackResponse(pieces, method);
      const end = last === "complete" ? head.length + body.length : undefined;
      expect(track).toMatchObject({ messages: [{ headBytes: head, bodyStart: head.length, end }], last });
    }
  });

  test("an answer after interim ones", () => {
    const interim = "HTTP/1.1 100 Continue\r\n\r\n";
    const hints = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
    const final = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    for (const pieces of everyCut(bytes(`${interim}${hints}${final}a`))) {
      const track = trackResponse(pieces);
      expect(track.messages.map((message) => message.headBytes)).toEqual([interim, hints, final]);
      expect(track.last).toBe("complete");
    }
  });
});

const refused: [string, string, string][] = [
  ["another version", "HTTP/2 200 OK\r\n\r\n", "a malformed status line"],
  ["HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", "a malformed status line"],
  ["a request", "GET / HTTP/1.1\r\n\r\n", "a malformed status line"],
  ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "a malformed status line"],
  ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "a malformed status line"],
  ["a status below 100", "HTTP/1.1 099 OK\r\n\r\n", "a malformed status line"],
  ["a status with a letter first", "HTTP/1.1 x00 OK\r\n\r\n", "a malformed status line"],
  ["a status with a letter second", "HTTP/1.1 2x0 OK\r\n\r\n", "a malformed status line"],
  ["a status with a sign second", "HTTP/1.1 2+0 OK\r\n\r\n", "a malformed status line"],
  ["a status with a letter third", "HTTP/1.1 20x OK\r\n\r\n", "a malformed status line"],
  ["a status with a sign third", "HTTP/1.1 20+ OK\r\n\r\n", "a malformed status line"],
  ["an empty line before", "\r\nHTTP/1.1 200 OK\r\n\r\n", "empty lines before the start line"],
  ["both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"],
  [
    "chunks in HTTP/1.0",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "Transfer-Encoding in an HTTP/1.0 answer",
  ],
  ["a bare LF", "HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\n", "a line feed without"],
];

test.each(refused)("a response tracker refuses %s", (_, text, rule) => {
  for (const pieces of everyCut(bytes(text)))
    expect(trackResponse(pieces).last).toContain(`refused: ${rule}`);
});

test.each([
  ["a tunnel", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ["a whole answer", "HTTP/1.1 204 No Content\r\n\r\n"],
])("after %s a response tracker consumes nothing until the next request", (_, head) => {
  const tracker = new ResponseTracker();
  tracker.expect("GET");
  expect(tracker.push(bytes(`${head}more`), 0)).toBe(head.length);
  expect(tracker.push(bytes("more"), 0)).toBe(0);
  tracker.expect("GET");
  expect(tracker.state).toBe("head");
  expect(tracker.push(bytes("HTTP/1.1 200"), 0)).toBe(12);
});
