import { describe, expect, test } from "vitest";
import { RequestTracker } from "../../src/core/request-tracker.ts";
import { bytes, everyCut } from "../support/splits.ts";
import { trackRequests } from "../support/tracked.ts";

const chunkedHead = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

/** The parts of requests whose one flaw makes them refused, and the rule that the refusal names. */
const refusedHeads: [string, string, string][] = [
  ["a bare LF after the request line", "GET / HTTP/1.1\nHost: h\r\n\r\n", "a line feed without"],
  ["a bare LF after a field", "GET / HTTP/1.1\r\nHost: h\n\r\n", "a line feed without"],
  ["a bare LF as the empty line", "GET / HTTP/1.1\r\nHost: h\r\n\n", "a line feed without"],
  ["a bare LF before the request line", "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "a line feed without"],
  ["a bare CR in a value", "GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", "a carriage return without"],
  ["a bare CR before a space", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r c\r\n\r\n", "a carriage return without"],
  ["two CRs before the LF", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\r\n\r\n", "a carriage return without"],
  ["a bare CR before the request line", "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "a carriage return without"],
  ["a bare CR at the empty line", "GET / HTTP/1.1\r\nHost: h\r\n\rX", "a carriage return without"],
  ["a folded line", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "a folded line"],
  ["a line folded by a tab", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\n\r\n", "a folded line"],
  ["a folded first field line", "GET / HTTP/1.1\r\nHost: h\r\n A: b\r\n\r\n", "a folded line"],
  [
    "white space before the request line",
    " GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "white space before the start line",
  ],
  [
    "two empty lines before the request line",
    "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "empty lines before",
  ],
  ["a NUL in a value", "GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", "a control character in the head"],
  ["a NUL in the target", "GET /\0 HTTP/1.1\r\n\r\n", "a control character in the head"],
  ["a DEL in a value", "GET / HTTP/1.1\r\nHost: h\r\nA: \x7f\r\n\r\n", "a control character in the head"],
  ["a TLS handshake", "\x16\x03\x01\x02\x00", "a control character in the head"],
  ["no target", "GET HTTP/1.1\r\n\r\n", "a malformed request line"],
  ["an empty target", "GET  HTTP/1.1\r\n\r\n", "a malformed request line"],
  ["no method", "/ HTTP/1.1\r\n\r\n", "a malformed request line"],
  ["a method that is no token", "G(T / HTTP/1.1\r\n\r\n", "a malformed request line"],
  ["a tab between method and target", "GET\t/ HTTP/1.1\r\n\r\n", "a malformed request line"],
  ["no version", "GET /\r\n\r\n", "a malformed request line"],
  ["a version in lower case", "GET / http/1.1\r\n\r\n", "a malformed request line"],
  ["HTTP/1.2", "GET / HTTP/1.2\r\n\r\n", "a malformed request line"],
  ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "a malformed request line"],
  ["a word after the version", "GET / HTTP/1.1 x\r\n\r\n", "a malformed request line"],
  ["a space after the version", "GET / HTTP/1.1 \r\n\r\n", "a malformed request line"],
  ["white space before the colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "a character that no field name"],
  ["a field without a colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", "a character that no field name"],
  ["a field without a name", "GET / HTTP/1.1\r\nHost: h\r\n: h\r\n\r\n", "a field line without a name"],
  [
    "both lengths",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "both",
  ],
  [
    "both lengths, the other way",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    "both",
  ],
  [
    "two equal lengths",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
    "more than one Content-Length",
  ],
  [
    "two lengths",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n",
    "more than one Content-Length",
  ],
  [
    "a list of lengths",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n",
    "a malformed Content-Length",
  ],
  ["an empty length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", "a malformed Content-Length"],
  [
    "a signed length",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n",
    "a malformed Content-Length",
  ],
  [
    "a negative length",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
    "a malformed Content-Length",
  ],
  [
    "a hexadecimal length",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\n",
    "a malformed Content-Length",
  ],
  [
    "a length with a colon",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1:\r\n\r\n",
    "a malformed Content-Length",
  ],
  [
    "a length beyond 2^53",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9007199254740992\r\n\r\n",
    "a malformed Content-Length",
  ],
  [
    "a length of 17 digits",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 00000000000000001\r\n\r\n",
    "a malformed Content-Length",
  ],
  [
    "gzip, chunked",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a Transfer-Encoding other",
  ],
  [
    "chunked twice",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
    "a Transfer-Encoding other",
  ],
  [
    "identity",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n",
    "a Transfer-Encoding other",
  ],
  [
    "a quoted chunked",
    'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "chunked"\r\n\r\n',
    "a Transfer-Encoding other",
  ],
  [
    "an empty encoding",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n",
    "a Transfer-Encoding other",
  ],
  [
    "two encodings",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "more than one Transfer-Encoding",
  ],
  [
    "an encoding in HTTP/1.0",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "Transfer-Encoding in an HTTP/1.0",
  ],
  ["no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", "no Host"],
  ["two Hosts", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nhost: h\r\n\r\n", "more than one Host"],
  ["two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n", "more than one Host"],
  ["a Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "a malformed Host"],
  ["a list of Hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "a malformed Host"],
  ["a Host with a user", "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", "a malformed Host"],
  ["a Host with a path", "GET / HTTP/1.1\r\nHost: h/p\r\n\r\n", "a malformed Host"],
  ["a Host beyond ASCII", "GET / HTTP/1.1\r\nHost: \xe9\r\n\r\n", "a malformed Host"],
  ["a Host with a port that is none", "GET / HTTP/1.1\r\nHost: h:8a\r\n\r\n", "a malformed Host"],
  ["a Host with two ports", "GET / HTTP/1.1\r\nHost: h:1:2\r\n\r\n", "a malformed Host"],
  ["an IP literal that is not closed", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "a malformed Host"],
  ["an empty IP literal", "GET / HTTP/1.1\r\nHost: []\r\n\r\n", "a malformed Host"],
  ["text behind an IP literal", "GET / HTTP/1.1\r\nHost: [::1]h\r\n\r\n", "a malformed Host"],
  [
    "CONNECT with a body",
    "CONNECT h:1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n",
    "CONNECT with a body",
  ],
  [
    "a WebSocket handshake with a body",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n",
    "a WebSocket handshake with a body",
  ],
];

const refusedBodies: [string, string, string][] = [
  ["no chunk size", "\r\n", "a chunk without a size"],
  ["a size with a sign", "+1\r\n", "a chunk without a size"],
  ["a size with 0x", "0x1\r\n", "a malformed chunk size"],
  ["a size before a space", "1 \r\n", "a malformed chunk size"],
  ["a size beyond 2^53", "20000000000000\r\n", "a chunk size that is too large"],
  ["a size of 15 digits", "000000000000001\r\n", "a chunk size that is too large"],
  ["a size that ends in a bare LF", "1\n", "a malformed chunk size"],
  ["a size that ends in a bare CR", "1\rx", "a chunk line that does not end in CRLF"],
  ["a bare LF in an extension", "1;a\n", "a control character in a chunk line"],
  ["a NUL in an extension", "1;\0\r\n", "a control character in a chunk line"],
  ["a DEL in an extension", "1;\x7f\r\n", "a control character in a chunk line"],
  ["an endless extension", `1;${"a".repeat(4096)}`, "a chunk line of more than 4096 bytes"],
  ["data longer than its size", "1\r\nab\r\n", "a chunk longer than its size"],
  ["data that ends in a bare LF", "1\r\na\n", "a chunk longer than its size"],
  ["data that ends in a bare CR", "1\r\na\rb", "a chunk longer than its size"],
  ["a folded trailer", "0\r\nA: b\r\n c\r\n\r\n", "a malformed trailer"],
  ["a trailer without a colon", "0\r\nA\r\n\r\n", "a malformed trailer"],
  ["a request in place of a trailer", "0\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "a malformed trailer"],
  ["a control character in a trailer", "0\r\nA: \0\r\n\r\n", "a control character in a trailer"],
  ["a trailer that ends in a bare CR", "0\r\nA: b\rc", "a trailer that does not end in CRLF"],
  ["a last line that ends in a bare CR", "0\r\n\rx", "a body that does not end in CRLF"],
  ["endless trailers", `0\r\n${"A: b\r\n".repeat(2731)}`, "trailers of more than 16384 bytes"],
];

describe("a request tracker refuses, however the input is cut,", () => {
  test.each(refusedHeads)("%s", (_, text, rule) => {
    for (const pieces of everyCut(bytes(text))) {
      expect(trackRequests(pieces)).toEqual({
        messages: [],
        last: expect.stringContaining(`refused: ${rule}`),
      });
    }
  });

  test.each(refusedBodies)("in a chunked body %s", (_, body, rule) => {
    const input = bytes(chunkedHead + body);
    const cuts = input.length > 2000 ? everyCut(input).slice(0, 2) : everyCut(input);
    for (const pieces of cuts) expect(trackRequests(pieces).last).toContain(`refused: ${rule}`);
  });

  test("a head of more than 64 KiB, at its first byte too many", () => {
    const line = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
    const fitting = `${line}${"a".repeat(65_536 - line.length - 4)}\r\n\r\n`;
    expect(trackRequests([bytes(fitting)]).messages).toHaveLength(1);
    const tooLong = bytes(`${line}${"a".repeat(65_537 - line.length - 4)}\r\n\r\n`);
    for (const size of [1, 1000, 65_535, 65_536, 65_537]) {
      const pieces: Uint8Array[] = [];
      for (let i = 0; i < tooLong.length; i += size) pieces.push(tooLong.subarray(i, i + size));
      expect(trackRequests(pieces)).toEqual({
        messages: [],
        last: "refused: a head of more than 65536 bytes",
      });
    }
  });

  test("a field that only the server may set, in any case of letters", () => {
    const input = bytes("GET / HTTP/1.1\r\nHost: h\r\nx-SECRET: 1\r\n\r\n");
    expect(trackRequests([input], "x-secret").last).toBe(
      "refused: a header field that only this server may set",
    );
    expect(trackRequests([input]).last).toBe("idle");
  });
});

/** Requests that are framed: what the tracker must say of the head, and where the message ends. */
const framed: [string, string, Record<string, unknown>, string][] = [
  ["GET", "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n", { method: "GET", target: "/a?b", minor: 1 }, ""],
  ["no field at all", "GET / HTTP/1.0\r\n\r\n", { method: "GET", minor: 0 }, ""],
  [
    "an absolute target",
    "DELETE http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
    { method: "DELETE", target: "http://h/" },
    "",
  ],
  ["a target beyond ASCII", "GET /\xe9 HTTP/1.1\r\nHost: h\r\n\r\n", { target: "/\xe9" }, ""],
  ["a length", "POST / HTTP/1.1\r\nHost: h\r\nCONTENT-LENGTH: \t3 \r\n\r\n", { contentLength: 3 }, "abc"],
  ["a length of 0", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", { contentLength: 0 }, ""],
  [
    "a length with leading zeros",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0003\r\n\r\n",
    { contentLength: 3 },
    "abc",
  ],
  [
    "a GET with a body",
    "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n",
    { contentLength: 3 },
    "abc",
  ],
  [
    "chunks",
    chunkedHead,
    { chunked: true },
    "3\r\nabc\r\n1F\r\n0123456789012345678901234567890\r\n0\r\n\r\n",
  ],
  ["a last chunk of many zeros", chunkedHead, { chunked: true }, "000\r\n\r\n"],
  [
    "extensions and trailers",
    chunkedHead,
    { chunked: true },
    '3;a="b\tc"\r\nabc\r\n0;z\r\nA: b\r\nB:\tc\r\n\r\n',
  ],
  [
    "Chunked in capitals",
    "POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding:CHUNKED\r\n\r\n",
    { chunked: true },
    "0\r\n\r\n",
  ],
  [
    "Connection: close",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    { close: true, webSocket: false },
    "",
  ],
  ["close in a list", "GET / HTTP/1.1\r\nHost: h\r\nConnection: a ,\tCLOSE , b\r\n\r\n", { close: true }, ""],
  [
    "close on a second line",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: a\r\nConnection: close\r\n\r\n",
    { close: true },
    "",
  ],
  [
    "closed is not close",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: closed, , xclose\r\n\r\n",
    { close: false },
    "",
  ],
  [
    "a WebSocket handshake",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n",
    { webSocket: true, close: false },
    "",
  ],
  ["an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", { target: "/" }, ""],
  [
    "a Host of every kind of character",
    "GET / HTTP/1.1\r\nHost: A-z_0.~%2f!:80\r\n\r\n",
    { target: "/" },
    "",
  ],
  ["a Host with an empty port", "GET / HTTP/1.1\r\nHost: h: \r\n\r\n", { target: "/" }, ""],
  ["an IP literal with a port", "GET / HTTP/1.1\r\nHost: [fe80::1]:80\r\n\r\n", { target: "/" }, ""],
  [
    "an upgrade in HTTP/1.0",
    "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    { webSocket: false, stripped: [[37, 57]] },
    "",
  ],
  [
    "Upgrade alone",
    "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
    { webSocket: false, stripped: [[25, 45]] },
    "",
  ],
  [
    "an upgrade to h2c",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    { webSocket: false, stripped: undefined },
    "",
  ],
  [
    "Expect",
    "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n",
    { expectContinue: true },
    "a",
  ],
  ["another Expect", "GET / HTTP/1.1\r\nHost: h\r\nExpect: wonders\r\n\r\n", { expectContinue: false }, ""],
  [
    "a name of a length that matters",
    "GET / HTTP/1.1\r\nHost: h\r\nX-1234: 5\r\n\r\n",
    { contentLength: undefined },
    "",
  ],
  ["CONNECT", "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", { method: "CONNECT", target: "h:1" }, ""],
  [
    "a value beyond ASCII, a tab in it",
    "GET / HTTP/1.1\r\nHost: h\r\nA: \xff\tb\r\n\r\n",
    { method: "GET" },
    "",
  ],
];

describe("a request tracker finds, however the input is cut, the end of", () => {
  test.each(framed)("%s", (_, headBytes, head, body) => {
    const next = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n";
    const end = headBytes.length + body.length;
    for (const pieces of everyCut(bytes(headBytes + body + next))) {
      expect(trackRequests(pieces)).toEqual({
        messages: [
          { head: expect.objectContaining(head), headBytes, bodyStart: headBytes.length, end },
          {
            head: expect.objectContaining({ target: "/next" }),
            headBytes: next,
            bodyStart: end + next.length,
            end: end + next.length,
          },
        ],
        last: "idle",
      });
    }
  });

  test("a request after one empty line, which is dropped", () => {
    for (const pieces of everyCut(bytes("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"))) {
      expect(trackRequests(pieces).messages).toMatchObject([
        { headBytes: "GET / HTTP/1.1\r\nHost: h\r\n\r\n", end: 29 },
      ]);
    }
  });
});

test("a request tracker says how far it is", () => {
  const tracker = new RequestTracker();
  expect(tracker.state).toBe("idle");
  tracker.push(bytes("\r\n"), 0);
  expect(tracker.state).toBe("idle");
  tracker.push(bytes("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r"), 0);
  expect(tracker.state).toBe("head");
  tracker.push(bytes("\n"), 0);
  expect(tracker.state).toBe("body");
  expect(tracker.push(bytes("abc"), 0)).toBe(2);
  expect(tracker.state).toBe("complete");
  expect(tracker.push(bytes("c"), 0)).toBe(0);
});

test("a head that came in one chunk is handed out without a copy", () => {
  const chunk = bytes("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const tracker = new RequestTracker();
  tracker.push(chunk, 0);
  expect(tracker.head?.bytes.buffer).toBe(chunk.buffer);
});
