import { inspect } from "node:util";
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { JsonDecimal, JsonError, parseExactJson, parseJson, stringifyJson } from "../../src/contract.ts";

const runs = { seed: inject("seed"), numRuns: inject("size") === "long" ? 20_000 : 500 };

test("integers keep their digits, whatever their size", () => {
  const text = "[0,-7,9007199254740991,9007199254740992,9007199254740993,18446744073709551615]";
  expect(parseJson(text)).toEqual([
    0,
    -7,
    9_007_199_254_740_991,
    9_007_199_254_740_992n,
    9_007_199_254_740_993n,
    18_446_744_073_709_551_615n,
  ]);
  expect(stringifyJson(parseJson(text))).toBe(text);
});

test("a number that is not written as an integer is none, and keeps its digits, too", () => {
  const text = "[1.0,1e3,-0,0.10,1e999]";
  expect(parseJson(text)).toEqual(
    ["1.0", "1e3", "-0", "0.10", "1e999"].map((source) => new JsonDecimal(source)),
  );
  expect(stringifyJson(parseJson(text))).toBe(text);
});

test.each<[string, string | Uint8Array, string]>([
  ["a member twice", '{"a":1,"a":1}', "names a member twice"],
  ["a member twice, once escaped", '{"a":1,"\\u0061":2}', "names a member twice"],
  ["a member twice, deep down", '[{"b":{"a":[],"c":"{","a":1}}]', "names a member twice"],
  ["half a surrogate pair in a text", '["\\ud800"]', "half a surrogate pair"],
  ["half a surrogate pair in a name", '{"\\udc00":1}', "half a surrogate pair"],
  ["a byte-order mark", new Uint8Array([0xef, 0xbb, 0xbf, 0x31]), "is not JSON"],
  ["bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0x22]), "is not UTF-8"],
  ["text behind the value", "1 2", "is not JSON"],
  ["nothing", "", "is not JSON"],
  ["128 levels", "[".repeat(128) + "]".repeat(128), "more than 127 levels"],
  ["200,000 levels", "[".repeat(200_000) + "]".repeat(200_000), "more than 127 levels"],
])("%s is refused", (_, text, problem) => {
  expect(() => parseJson(text)).toThrow(problem);
});

test("127 levels, equal names in different objects and names of prototypes are fine", () => {
  expect(() => parseJson("[".repeat(127) + "]".repeat(127))).not.toThrow();
  expect(parseJson('[{"a":1},{"a":{"a":"a"}}]')).toEqual([{ a: 1 }, { a: { a: "a" } }]);
  expect(Object.keys(parseJson('{"__proto__":1,"constructor":2}') as object)).toEqual([
    "__proto__",
    "constructor",
  ]);
});

test("a string of many megabytes is read, and what follows it is still looked at", () => {
  const long = "x".repeat(13_000_000);
  expect(() => parseJson(`{"a":"\\n${long}","a":1}`)).toThrow("names a member twice");
});

test("a quotation mark, a backslash or a bracket inside of a string is none", () => {
  const text = String.raw`{"a\\":"\\\\","b":"\"}{","{\"":["\\\"",{"a":"]","\u0062":1}]}`;
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test("the reader of answers keeps the same digits, and takes a member twice: the last one counts", () => {
  const text = "[0,-7,9007199254740993,1.0,-0]";
  expect(parseExactJson(text)).toEqual(parseJson(text));
  expect(parseExactJson('{"a":1,"a":18446744073709551615}')).toEqual({ a: 18_446_744_073_709_551_615n });
  expect(() => parseExactJson("{")).toThrow(SyntaxError);
});

test("an error holds nothing of the text", () => {
  expect(inspect(attempt(() => parseJson('{"secret-word": oops}')))).not.toContain("secret-word");
});

test("what JSON.parse reads without big numbers is read the same", () => {
  const json = fc.json({ noUnicodeString: false }).filter((text) => !/[.eE]|\d{16}|-0/.test(text));
  fc.assert(
    fc.property(json, (text) => {
      const read = attempt(() => parseJson(text));
      // Random texts may name a member twice or have half a pair, both of which JSON.parse takes.
      if (!(read instanceof JsonError)) expect(read).toEqual(JSON.parse(text));
    }),
    runs,
  );
});

test("exact integers survive being written and read", () => {
  const value = fc.dictionary(
    fc.string({ unit: "grapheme" }),
    fc.array(fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n })),
  );
  fc.assert(
    fc.property(value, (object) => {
      expect(parseJson(stringifyJson(object))).toEqual({ ...object });
    }),
    runs,
  );
});

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}
