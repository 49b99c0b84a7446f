import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { formatRecord, MAX_RECORD_BYTES, parseRecord } from "../../src/core/record.ts";
import { loadDigest } from "../../src/digest.ts";
import { vectors } from "../support/ledger-vectors.ts";

const parse = (text: string) => parseRecord(Buffer.from(text));
const owner = { backend: "http://10.20.0.11:8787", bodyHash: "blake3:00" };
const good = formatRecord(owner);

it.each(vectors.ledger.records)("the record of a claim has the published bytes ($file)", async (vector) => {
  const { bodyHash } = await loadDigest();
  const expected = { backend: vector.backend, bodyHash: bodyHash(vector.body) };
  expect(formatRecord(expected)).toBe(vector.bytes);
  expect(vector.bytes).toHaveLength(vector.length);
  expect(parse(vector.bytes)).toEqual({ owner: expected });
});

it.each(vectors.ledger.readChecks)("reading a record as published: $name", ({ text, valid }) => {
  expect("owner" in parse(text)).toBe(valid);
});

describe("a record is refused with the reason", () => {
  it.each([
    ["empty", "", "it is empty"],
    ["too long", good + " ".repeat(MAX_RECORD_BYTES + 1 - good.length), "it has more than 4096 bytes"],
    ["no JSON", "hello", "it is no JSON object of strings and integers, or it was cut off"],
    ["a list", "[]", "it is no JSON object"],
    ["an empty object", "{}", "it is no JSON object"],
    ["cut off behind a value", '{"version":1', "it is no JSON object"],
    ["cut off behind a comma", '{"version":1,', "it is no JSON object"],
    ["with a wrong separator", good.replace(",", ";"), "it is no JSON object"],
    ["with text behind it", `${good}{}`, "it is no JSON object"],
    ["with a nested value", good.replace(":1,", ":{},"), "it is no JSON object"],
    ["with null", good.replace(":1,", ":null,"), "it is no JSON object"],
    ["with a leading zero", good.replace(":1,", ":01,"), "it is no JSON object"],
    ["with a raw control character", good.replace("00", "0\u00010"), "it is no JSON object"],
    ["with a broken escape", good.replace("00", "\\x"), "it is no JSON object"],
    ["with an unknown member", good.replace("}", ',"at":1}'), 'it has an unknown member "at"'],
    ["with a member twice", good.replace("}", ',"version":1}'), "it has the same member twice"],
    ["without an owner", '{"version":1,"body_hash":"h"}', "it lacks backend"],
    ["of another version", good.replace(":1,", ":2,"), "its version is 2, not 1"],
    ["of a version in words", good.replace(":1,", ':"1",'), 'its version is "1", not 1'],
    ["of a negative version", good.replace(":1,", ":-1,"), "its version is -1, not 1"],
    ["with a number for an owner", '{"version":1,"backend":1,"body_hash":"h"}', "must be texts"],
    ["with a number for a hash", '{"version":1,"backend":"http://n","body_hash":1}', "must be texts"],
    ["for another scheme", good.replace("http:", "https:"), "its backend is no http:// origin"],
  ])("%s", (_, text, problem) => {
    expect(parse(text)).toEqual({ problem: expect.stringContaining(problem) });
  });

  it("no UTF-8, or with a byte order mark", () => {
    expect(parseRecord(Uint8Array.of(0x7b, 0xff, 0x7d))).toEqual({ problem: "it is not UTF-8" });
    expect(parse(`\ufeff${good}`)).toEqual({ problem: expect.stringContaining("no JSON object") });
  });

  it("of exactly the limit it is not refused", () => {
    expect(parse(good.padEnd(MAX_RECORD_BYTES))).toEqual({ owner });
  });
});

describe("for any owner", () => {
  const origin = fc
    .string({ unit: "binary", minLength: 1, maxLength: 200 })
    .map((text) => `http://${text.replaceAll(/[/@?#\s\p{Cc}\p{Cs}]/gu, "x")}`);
  const owners = fc.record({ backend: origin, bodyHash: fc.string({ unit: "grapheme", maxLength: 300 }) });
  const options = { seed: inject("seed"), numRuns: inject("size") === "long" ? 20_000 : 500 };

  it("what is written is read again", () => {
    fc.assert(
      fc.property(owners, (any) => {
        expect(parse(formatRecord(any))).toEqual({ owner: any });
      }),
      options,
    );
  });

  it("the longest origin has a record that is read again", () => {
    for (const character of ['"', "\\", "\u00e4", "\u{1f600}"]) {
      const length = Buffer.byteLength(character);
      const longest = {
        backend: `http://${character.repeat(1_017 / length)}`,
        bodyHash: `blake3:${"0".repeat(64)}`,
      };
      expect(parse(formatRecord(longest))).toEqual({ owner: longest });
    }
  });

  it("white space and the order of members do not matter", () => {
    const space = fc.string({ unit: fc.constantFrom(" ", "\t", "\n", "\r"), maxLength: 3 });
    fc.assert(
      fc.property(
        owners,
        fc.array(space, { minLength: 14, maxLength: 14 }),
        fc.nat(5),
        (any, spaces, order) => {
          const members: [string, unknown][] = [
            ["version", 1],
            ["backend", any.backend],
            ["body_hash", any.bodyHash],
          ];
          const [first] = members.splice(order % 3, 1);
          if (first !== undefined) members.splice(order % 2, 0, first);
          const gap = spaces[Symbol.iterator]();
          const next = () => gap.next().value ?? "";
          const text = members.map(
            ([name, value]) => `${next()}"${name}"${next()}:${next()}${JSON.stringify(value)}${next()}`,
          );
          expect(parse(`${next()}{${text.join(",")}}${next()}`)).toEqual({ owner: any });
        },
      ),
      options,
    );
  });

  it("no part of a record is one, and no byte before or behind it is overlooked", () => {
    fc.assert(
      fc.property(
        owners,
        fc.nat(),
        fc.constantFrom("x", "{", "}", ",", "0", "\u0000", "\u00a0"),
        (any, at, more) => {
          const text = formatRecord(any);
          expect(parse(text.slice(0, at % text.length))).toHaveProperty("problem");
          expect(parse(text + more)).toHaveProperty("problem");
          expect(parse(more + text)).toHaveProperty("problem");
        },
      ),
      options,
    );
  });

  it("reading never throws, and agrees with JSON about what it accepts", () => {
    const scrambled = fc.tuple(owners, fc.nat(), fc.uint8Array({ maxLength: 8 })).map(([any, at, bytes]) => {
      const record = Buffer.from(formatRecord(any));
      record.set(bytes, at % Math.max(1, record.length - bytes.length));
      return record;
    });
    fc.assert(
      fc.property(fc.oneof(scrambled, fc.uint8Array({ maxLength: 200 })), (bytes) => {
        const read = parseRecord(bytes);
        if ("problem" in read) return;
        const { version, backend, body_hash, ...rest } = JSON.parse(Buffer.from(bytes).toString());
        expect({ version, backend, bodyHash: body_hash, rest }).toEqual({
          version: 1,
          ...read.owner,
          rest: {},
        });
      }),
      options,
    );
  });
});

it("a message about what somebody wrote has no character that a terminal would obey, and an end", () => {
  const name = `\u009b2J\u202e${"x".repeat(1_000)}`;
  const parsed = parseRecord(Buffer.from(JSON.stringify({ version: 1, [name]: "" })));
  expect("problem" in parsed && parsed.problem).toMatch(/^[\x20-\x7e]{1,120}$/);
});
