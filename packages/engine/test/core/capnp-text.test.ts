import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { capnpString, capnpText, struct } from "../../src/core/capnp-text.ts";

/** What Cap'n Proto's lexer makes of a string literal: C escapes and bytes, ended by a bare quote. */
function lex(literal: string): { bytes: Uint8Array; rest: string } {
  const escapes: Record<string, number> = { n: 10, r: 13, t: 9, '"': 34, "\\": 92 };
  const bytes: number[] = [];
  let at = 1;
  while (literal[at] !== '"') {
    if (at >= literal.length) throw new RangeError("the literal does not end");
    if (literal[at] !== "\\") {
      bytes.push(literal.charCodeAt(at));
      at += 1;
    } else if (literal[at + 1] === "x") {
      bytes.push(Number.parseInt(literal.slice(at + 2, at + 4), 16));
      at += 4;
    } else {
      bytes.push(escapes[literal[at + 1] ?? ""] ?? Number.NaN);
      at += 2;
    }
  }
  return { bytes: Uint8Array.from(bytes), rest: literal.slice(at + 1) };
}

describe("capnpString", () => {
  it.each([
    ["plain text", "hello", '"hello"'],
    ["a quote and a backslash", 'a"b\\c', '"a\\"b\\\\c"'],
    ["line ends and tabs", "a\r\n\tb", '"a\\r\\n\\tb"'],
    ["bytes that are not printable", "\0\x7f\x1b", '"\\x00\\x7f\\x1b"'],
    ["text outside ASCII, as UTF-8", "é€", '"\\xc3\\xa9\\xe2\\x82\\xac"'],
    ["a lone surrogate, as U+FFFD", "\ud800", '"\\xef\\xbf\\xbd"'],
  ])("writes %s", (_, text, literal) => {
    expect(capnpString(text)).toBe(literal);
  });

  it("writes any text so that reading it gives the same bytes and nothing is left over", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const { bytes, rest } = lex(capnpString(text));
        return Buffer.from(text).equals(bytes) && rest === "";
      }),
      { seed: inject("seed"), numRuns: inject("size") === "long" ? 20_000 : 1000 },
    );
  });

  it("writes printable ASCII only", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        return /^[\x20-\x7e]*$/.test(capnpString(text));
      }),
      { seed: inject("seed") },
    );
  });
});

describe("capnpText", () => {
  it("leaves out members that are undefined", () => {
    expect(capnpText(struct({ name: "a", port: undefined, on: true }))).toBe('(name = "a", on = true)');
  });

  it("writes embeds, constants, numbers and empty lists", () => {
    const value = struct({ source: { embed: 'a"b' }, worker: { constant: "worker" }, port: 8080, none: [] });
    expect(capnpText(value)).toBe('(source = embed "a\\"b", worker = .worker, port = 8080, none = [])');
  });

  it("gives each item of a list a line", () => {
    expect(capnpText(struct({ list: ["a", "b"] }))).toBe('(\n  list = [\n    "a",\n    "b"\n  ]\n)');
  });
});
