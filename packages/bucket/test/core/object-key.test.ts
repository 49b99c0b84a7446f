import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import {
  decodeName,
  encodeName,
  fromBytes,
  keyBytes,
  keyOfPath,
  PIECE_BYTES,
  pathOfKey,
  toBytes,
} from "../../src/core/object-key.ts";

/** Keys with all that makes them hard: slashes, dots, case, long pieces, other scripts, control characters. */
const hardKey = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "/",
        "//",
        ".",
        "..",
        "a",
        "A",
        "%",
        "=",
        "+",
        "~",
        "é",
        "😀",
        "\0",
        "\n",
        "x".repeat(PIECE_BYTES),
      ),
      fc.string({ unit: "binary", maxLength: 12 }),
      fc.string({ unit: fc.constantFrom("a", "/", "-"), maxLength: 200 }),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) => parts.join(""))
  .filter((key) => isKey(key));

function isKey(key: string): boolean {
  try {
    keyBytes(key);
    return true;
  } catch {
    return false;
  }
}

const settings = { seed: inject("seed"), numRuns: 500 };

describe("the path of a key", () => {
  it("leads back to the key, and so no two keys share one", () => {
    fc.assert(
      fc.property(hardKey, (key) => {
        expect(keyOfPath(pathOfKey(keyBytes(key)))).toBe(key);
      }),
      settings,
    );
  });

  it("differs from another key's even where case does not count", () => {
    fc.assert(
      fc.property(hardKey, hardKey, (a, b) => {
        const lower = (key: string) => pathOfKey(keyBytes(key)).join("/").toLowerCase();
        expect(lower(a) === lower(b)).toBe(a === b);
      }),
      settings,
    );
  });

  it("is made of names that a file system takes and that cannot climb", () => {
    fc.assert(
      fc.property(hardKey, (key) => {
        const names = pathOfKey(keyBytes(key));
        for (const name of names) expect(name).toMatch(/^(?:[a-z0-9._-]|%[0-9a-f]{2}){0,80}[=+~]$/);
        expect(names).not.toContain("..");
        expect(names.join("/").length).toBeLessThanOrEqual(3_100);
      }),
      settings,
    );
  });

  it("is never the folder of another key", () => {
    fc.assert(
      fc.property(hardKey, hardKey, (a, b) => {
        const [short, long] = [pathOfKey(keyBytes(a)), pathOfKey(keyBytes(b))];
        if (short.length < long.length) expect(long.slice(0, short.length)).not.toEqual(short);
      }),
      settings,
    );
  });

  it.each([
    ["a", ["a="]],
    ["a/b", ["a+", "b="]],
    ["a/", ["a+", "="]],
    ["/", ["+", "="]],
    ["a/../b", ["a+", "..+", "b="]],
    ["Own.json", ["%4fwn.json="]],
    ["x".repeat(80), [`${"x".repeat(80)}~`, "="]],
    ["é", ["%c3%a9="]],
  ])("%j is %j", (key, names) => {
    expect(pathOfKey(keyBytes(key))).toEqual(names);
  });
});

describe("a key", () => {
  it.each([
    ["empty", ""],
    ["longer than 1,024 bytes", "é".repeat(513)],
    ["with an unpaired surrogate", "a\ud800"],
    ["that climbs out at once", "../a"],
    ["that climbs out later", "a/../../b"],
    ["that climbs through empty segments", "a//../../b"],
    ["that is only dots", ".."],
  ])("%s is refused", (_, key) => {
    expect(() => keyBytes(key)).toThrow(expect.objectContaining({ code: "CELLKIT_BUCKET_KEY" }));
  });

  it("of exactly 1,024 bytes is accepted", () => {
    expect(keyBytes("é".repeat(512))).toHaveLength(1024);
  });
});

describe("a file name", () => {
  it.each([
    "",
    "a",
    "lost+found",
    "A=",
    "%41",
    "%4A=",
    "%61=",
    "a/b=",
    "%2f=",
    "x~",
    `${"x".repeat(80)}=`,
    "%zz=",
  ])("%j is not taken for an object", (name) => {
    expect(decodeName(name)).toBeUndefined();
  });

  it("decodes to what it was made from", () => {
    const entry = { kind: "folder", bytes: toBytes("Ü~") } as const;
    expect(decodeName(encodeName(entry))).toEqual(entry);
    expect(fromBytes(entry.bytes)).toBe("Ü~");
    expect(fromBytes("\u00ff")).toBeUndefined();
  });

  it("in the wrong place names no key", () => {
    expect(keyOfPath(["a=", "b="])).toBeUndefined();
    expect(keyOfPath(["a+"])).toBeUndefined();
    expect(keyOfPath(["no"])).toBeUndefined();
  });
});
