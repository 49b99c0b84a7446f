import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import {
  classKey,
  formatScope,
  isScope,
  namespaceKey,
  objectIdFromName,
  objectIdFromRandom,
  parseObjectId,
  parseScope,
} from "../../src/core/scope.ts";
import { ScopeError } from "../../src/errors.ts";
import { peerVectors } from "../support/peer-vectors.ts";

const fuzzing = { numRuns: inject("size") === "long" ? 100_000 : 2_000, seed: inject("seed") };
const [chat] = peerVectors.objectIds;
const id = chat?.id ?? "";

describe("ids", () => {
  test.each(peerVectors.objectIds)("vector: $className $name of $script", (one) => {
    const script = one.script ?? "any";
    expect(namespaceKey(script, one.className)).toBe(one.namespaceKey);
    expect(Buffer.from(classKey(script, one.className)).toString("hex")).toBe(one.classKeyHex);
    expect(objectIdFromName(script, one.className, one.name)).toBe(one.id);
    expect(formatScope({ className: one.className, id: one.id })).toBe(one.scope);
    expect(parseScope(one.scope)).toEqual({ className: one.className, id: one.id });
    expect(parseObjectId(script, one.className, one.id.toUpperCase())).toBe(one.id);
  });

  test("an id of another class or script is recognised", () => {
    expect(() => parseObjectId("chat", "Other", id)).toThrow(ScopeError);
    expect(() => parseObjectId("other", "Room", id)).toThrow(ScopeError);
  });

  test.each(["", "0", id.slice(1), `${id}0`, `${id.slice(1)}g`, `${id}\n`])("%j is no id", (text) => {
    expect(() => parseObjectId("chat", "Room", text)).toThrow(
      expect.objectContaining({ code: "CELLKIT_PEER_SCOPE" }),
    );
  });

  test("random bytes make an id of their class", () => {
    const made = objectIdFromRandom("chat", "Room", Buffer.alloc(16, 5));
    expect(made.startsWith("05".repeat(16))).toBe(true);
    expect(parseObjectId("chat", "Room", made)).toBe(made);
    expect(() => objectIdFromRandom("chat", "Room", Buffer.alloc(15))).toThrow(ScopeError);
  });
});

describe("scopes", () => {
  test.each([
    ["Room:1", true],
    [".cron:chat", true],
    ["__D1Database:$a-b.c_d:e", true],
    ["a".repeat(255), true],
    ["a".repeat(256), false],
    ["", false],
    [".", false],
    ["..", false],
    ["...", true],
    ["a/b", false],
    ["a b", false],
    ["a%3Ab", false],
    ["é", false],
    ["a\n", false],
    ["\u0000", false],
  ])("%j is a scope: %s", (text, is) => {
    expect(isScope(text)).toBe(is);
  });

  test.each(["Room", "Room:", `:${id}`, `Room:${id.toUpperCase()}`, `Room:${id} `, "."])(
    "%j is no cell's",
    (text) => {
      expect(() => parseScope(text)).toThrow(ScopeError);
    },
  );

  test.each(["", "a b", "a/b", "x".repeat(200), "é"])("class %j cannot stand in one", (className) => {
    expect(() => formatScope({ className, id })).toThrow(ScopeError);
  });

  test("whatever text is given, it is a scope by the letter of the rule, or refused with an error of ours", () => {
    const letters = fc.constantFrom(..."azAZ09_-.:$", " ", "/", "%", "é", "\n");
    const text = fc.oneof(
      fc.string({ maxLength: 20, unit: letters }),
      fc.string({ maxLength: 260 }),
      fc.string({ unit: "binary" }),
    );
    const allowed = new Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:$");
    const property = fc.property(text, (given) => {
      const is =
        given.length >= 1 &&
        given.length <= 255 &&
        given !== "." &&
        given !== ".." &&
        [...given].every((letter) => allowed.has(letter));
      expect(isScope(given)).toBe(is);
      try {
        expect(formatScope(parseScope(given))).toBe(given);
      } catch (error) {
        expect(error).toBeInstanceOf(ScopeError);
      }
    });
    fc.assert(property, fuzzing);
  });

  test("a scope that was made is read back", () => {
    const className = fc.stringMatching(/^[A-Za-z0-9_.:$-]{1,190}$/);
    const hexId = fc.stringMatching(/^[0-9a-f]{64}$/);
    const property = fc.property(className, hexId, (name, hex) => {
      expect(parseScope(formatScope({ className: name, id: hex }))).toEqual({ className: name, id: hex });
    });
    fc.assert(property, fuzzing);
  });
});
