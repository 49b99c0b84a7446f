import { describe, expect, it } from "vitest";
import { requestIdOf } from "../../src/core/request-id.ts";
import { leastMs } from "../support/least-ms.ts";

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

describe("a body has an id when", () => {
  it.each([
    ["it is an object with one", '{"id":"a"}', "a"],
    ["there is white space around", ' \t\r\n{ "id" : "a" } ', "a"],
    ["there is more in it", '{"x":{"id":"b"},"id":"a"}', "a"],
    ["it is written with escapes", '{"\\u0069d":"\\u0061"}', "a"],
    ["it comes twice: the last one counts", '{"id":"b","id":"a"}', "a"],
    ["others are named like Object's own", '{"__proto__":{"id":"b"},"id":"a"}', "a"],
    ["a pair of surrogates is whole", '{"id":"a","x":"\\ud83d\\ude00"}', "a"],
    ["a backslash stands before what looks like half a pair", '{"id":"a","x":"\\\\ud800"}', "a"],
    ["the largest double is in it", '{"id":"a","x":1.7976931348623157e308}', "a"],
    ["a number is too small for a double", '{"id":"a","x":1e-999}', "a"],
    ["a text looks like a number too large", '{"id":"a","x":"1e999"}', "a"],
    ["a text has many brackets", `{"id":"a","x":"${"[".repeat(200)}"}`, "a"],
    ["there are many brackets side by side", `{"id":"a","x":[${"{},".repeat(200)}0]}`, "a"],
    ["it has 127 levels", `{"id":"a","x":${nested(126)}}`, "a"],
  ])("%s", (_rule, body, id) => {
    expect(requestIdOf(Buffer.from(body))).toBe(id);
  });
});

describe("a body has no id when", () => {
  it.each([
    ["it is empty", ""],
    ["it is no JSON", "{id:1}"],
    ["text trails", '{"id":"a"}x'],
    ["two values stand there", '{"id":"a"}{"id":"a"}'],
    ["it is null", "null"],
    ["it is an array", '["id"]'],
    ["it is a text", '"id"'],
    ["it has none", '{"ID":"a"}'],
    ["its id is a number", '{"id":1}'],
    ["its id has a slash", '{"id":"a/b"}'],
    ["its last id is a bad one", '{"id":"a","id":1}'],
    ["it begins with a byte-order mark", '\ufeff{"id":"a"}'],
    ["half a pair stands in a value", '{"id":"a","x":"\\ud800"}'],
    ["half a pair stands in a name", '{"id":"a","\\uDC00":1}'],
    ["half a pair stands in a value that is overwritten", '{"id":"a","x":"\\ud800","x":""}'],
    ["a number is too large", '{"id":"a","x":1e999}'],
    ["a number is too small below", '{"id":"a","x":[-1E+400]}'],
    ["a number is too large and overwritten", '{"id":"a","x":1e999,"x":1}'],
    ["digits are too many", `{"id":"a","x":${"9".repeat(310)}}`],
    ["digits and exponent are too large together", `{"id":"a","x":${"9".repeat(250)}e99}`],
    ["it has 128 levels", `{"id":"a","x":${nested(127)}}`],
  ])("%s", (_rule, body) => {
    expect(requestIdOf(Buffer.from(body))).toBeUndefined();
  });

  it("it is not UTF-8", () => {
    expect(requestIdOf(Buffer.from('{"id":"a","x":"\xff"}', "latin1"))).toBeUndefined();
  });
});

it("numbers of many digits cost hardly more than text", () => {
  const bodies = ["1".repeat(299), '"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"'].map((each) => {
    const values = Array.from({ length: Math.floor(60_000 / each.length) }, () => each);
    return Buffer.from(`{"id":"a","x":[${values}]}`);
  });
  const [numbers = Buffer.of(), text = Buffer.of()] = bodies;
  const [numbersMs, textMs] = leastMs(
    () => expect(requestIdOf(numbers)).toBe("a"),
    () => expect(requestIdOf(text)).toBe("a"),
  );
  // They differed by a factor of thirty.
  expect(numbersMs).toBeLessThan(10 * textMs);
});
