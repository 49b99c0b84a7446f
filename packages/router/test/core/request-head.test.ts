import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { type HeadRead, HeadReader } from "../../src/core/request-head.ts";
import { leastMs } from "../support/least-ms.ts";

function readWhole(text: string): HeadRead {
  return new HeadReader().push(Buffer.from(text, "latin1"));
}

/** The same bytes in two pieces, cut at each place. */
function readInPieces(text: string): HeadRead[] {
  const bytes = Buffer.from(text, "latin1");
  return Array.from({ length: bytes.length - 1 }, (_, at) => {
    const reader = new HeadReader();
    const first = reader.push(bytes.subarray(0, at + 1));
    return first.kind === "more" ? reader.push(bytes.subarray(at + 1)) : first;
  });
}

const kindOf = (read: HeadRead) => (read.kind === "refused" ? read.refusal : read.kind);
const get = (headers: string) => `GET /v1/executions/x HTTP/1.1\r\n${headers}`;

describe("a head", () => {
  it("is method, path and the headers that count, whatever their case", () => {
    const read = readWhole(
      "POST /v1/executions HTTP/1.1\r\nHOST: x\r\naUTHORIZATION:  Bearer abc \r\nX-CELLN-BACKEND: http://n\r\nPrefer: respond-async\r\nX-Celln-Parent-Incarnation: p\r\ncontent-LENGTH: 007\r\n\r\nbody",
    );
    expect(read).toEqual({
      kind: "head",
      head: {
        method: "POST",
        path: "/v1/executions",
        authorization: "Bearer abc",
        pin: "http://n",
        contentLength: 7,
      },
      rest: Buffer.from("body"),
    });
  });

  it.each([
    ["the version is ignored", "GET /a nonsense more\r\n\r\n", "GET", "/a"],
    ["the version may be missing", "GET /a\r\n\r\n", "GET", "/a"],
    ["the path may be missing", "GET \t/a\r\n\r\n", "GET", "/a"],
    ["a method may be empty", " /a HTTP/1.1\r\n\r\n", "", "/a"],
    ["any white space ends a path", "GET /a\u00a0b HTTP/1.1\n\n", "GET", "/a"],
    ["nothing is decoded or normalized", "GET /a/../%2e?b#c HTTP/1.1\r\n\r\n", "GET", "/a/../%2e?b#c"],
    ["the target may be absolute", "GET http://h/a HTTP/1.1\r\n\r\n", "GET", "http://h/a"],
    ["white space ends the headers, too", "GET /a HTTP/1.1\r\n \t\r\n", "GET", "/a"],
    ["U+0085 is white space", "GET /a HTTP/1.1\r\n\u0085\r\n", "GET", "/a"],
    [
      "a name with a space before the colon is another name",
      get("Content-Length : x\r\n\r\n"),
      "GET",
      "/v1/executions/x",
    ],
  ])("%s", (_rule, text, method, path) => {
    expect(readWhole(text)).toMatchObject({ kind: "head", head: { method, path } });
  });

  it.each([
    ["malformed-line", "GARBAGE\r\n"],
    ["malformed-line", "\r\n"],
    ["malformed-line", "GET\t/a\tHTTP/1.1\r\n"],
    ["malformed-line", "GET \r\n"],
    ["invalid-header", get("nope\r\n")],
    ["duplicate-authorization", get("Authorization: a\r\nAuthorization: a\r\n")],
    ["duplicate-authorization", get("Authorization:\r\nauthorization: a\r\n")],
    ["duplicate-pin", get("X-Celln-Backend: a\r\nX-Celln-Backend: a\r\n")],
    ["duplicate-parent", get("X-Celln-Parent-Incarnation: a\r\nX-Celln-Parent-Incarnation: a\r\n")],
    ["invalid-preference", get("Prefer: respond-async, wait=1\r\n")],
    ["invalid-preference", get("Prefer: Respond-Async\r\n")],
    ["invalid-preference", get("Prefer: respond-async\r\nPrefer: respond-async\r\n")],
    ["invalid-length", get("Content-Length: 1\r\nContent-Length: 1\r\n")],
    ["invalid-length", get("Content-Length:\r\n")],
    ["invalid-length", get("Content-Length: +1\r\n")],
    ["invalid-length", get("Content-Length: 1, 1\r\n")],
    ["invalid-length", get("Content-Length: 0x1\r\n")],
    ["invalid-length", get("Content-Length: 18446744073709551616\r\n")],
    ["transfer-encoding", get("Transfer-Encoding:\r\n")],
    ["transfer-encoding", get("transfer-encoding: identity\r\n")],
    ["invalid-preference", get("Prefer: x\r\nTransfer-Encoding: chunked\r\n")],
    ["transfer-encoding", get("Transfer-Encoding: chunked\r\nPrefer: x\r\n")],
  ] as const)("is refused as %s: %j, before its end", (refusal, text) => {
    expect(kindOf(readWhole(text))).toBe(refusal);
    for (const read of readInPieces(text)) expect(kindOf(read)).toBe(refusal);
  });

  it.each([
    ["18446744073709551615", 2 ** 64],
    [`${"0".repeat(50)}65536`, 65_536],
    ["0", 0],
  ])("takes a length of %s", (text, contentLength) => {
    expect(readWhole(get(`Content-Length: ${text}\r\n\r\n`))).toMatchObject({ head: { contentLength } });
  });
});

describe("a line", () => {
  const line = (units: number, filler: string) => `GET /${filler.repeat(units)}\n`;

  it("has at most 8,192 bytes, line feed included", () => {
    expect(kindOf(readWhole(line(8_186, "a")))).toBe("more");
    expect(kindOf(readWhole(line(8_187, "a")))).toBe("silent");
    expect(kindOf(readWhole(get(`X: ${"a".repeat(8_188)}\n`)))).toBe("more");
    expect(kindOf(readWhole(get(`X: ${"a".repeat(8_189)}\n`)))).toBe("silent");
  });

  it("counts bytes of 0x80 and more twice", () => {
    expect(kindOf(readWhole(line(4_093, "\u00e9")))).toBe("more");
    expect(kindOf(readWhole(line(4_094, "\u00e9")))).toBe("silent");
  });

  it("that can not end in time any more is not waited for", () => {
    expect(kindOf(readWhole("a".repeat(8_191)))).toBe("more");
    expect(kindOf(readWhole("a".repeat(8_192)))).toBe("silent");
  });

  it("of hostile spaces takes no time", () => {
    const [spaces, letters] = [" ", "a"].map((each) => get(`X: ${each.repeat(8_000)}x\r\n`.repeat(8)));
    const [spacesMs, lettersMs] = leastMs(
      () => readWhole(spaces ?? ""),
      () => readWhole(letters ?? ""),
    );
    // Work by the square of their number is some thousand times as much.
    expect(spacesMs).toBeLessThan(50 * lettersMs);
  });
});

it("64 headers are taken and the 65th ends the connection", () => {
  expect(kindOf(readWhole(get(`${"X: 1\r\n".repeat(64)}\r\n`)))).toBe("head");
  expect(kindOf(readWhole(get("X: 1\r\n".repeat(65))))).toBe("silent");
  expect(kindOf(readWhole(get(`${"X: 1\r\n".repeat(64)}nope\r\n`)))).toBe("silent");
});

it("bytes in any pieces come to the same", () => {
  const piece = fc.constantFrom(
    "GET ",
    "/a",
    " ",
    "\r\n",
    "\n",
    "Prefer: respond-async",
    "Content-Length: 3",
    "X",
    ":",
    "é",
    "\0",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 1, max: 7 }), (pieces, size) => {
      const bytes = Buffer.from(pieces.join(""), "latin1");
      const reader = new HeadReader();
      let read: HeadRead = { kind: "more" };
      for (let at = 0; at < bytes.length && read.kind === "more"; at += size)
        read = reader.push(bytes.subarray(at, at + size));
      const whole = new HeadReader().push(bytes);
      expect(kindOf(read)).toBe(kindOf(whole));
      if (read.kind === "head" && whole.kind === "head") expect(read.head).toEqual(whole.head);
    }),
    { seed: inject("seed") },
  );
});
