import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { kindOfFile, versionOf } from "../../src/core/modules.ts";

const runs = { seed: inject("seed"), numRuns: inject("size") === "long" ? 10_000 : 300 };

const modules = fc.uniqueArray(
  fc.record({ name: fc.stringMatching(/^[a-z0-9._-]{1,20}$/), bytes: fc.uint8Array({ maxLength: 200 }) }),
  { selector: ({ name }) => name, minLength: 1, maxLength: 8 },
);

describe("the version text", () => {
  it("is the same in whatever order the modules come", () => {
    fc.assert(
      fc.property(modules, fc.string(), fc.integer(), (list, metadata, turn) => {
        const at = Math.abs(turn) % list.length;
        const turned = [...list.slice(at), ...list.slice(0, at)].reverse();
        expect(versionOf(turned, metadata)).toBe(versionOf(list, metadata));
      }),
      runs,
    );
  });

  it("changes with one bit of a module, with a name and with the metadata", () => {
    fc.assert(
      fc.property(
        modules,
        fc.string(),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (list, metadata, place, flip) => {
          const version = versionOf(list, metadata);
          expect(version).toMatch(/^[0-9a-f]{16}$/);
          expect(versionOf(list, `${metadata} `)).not.toBe(version);
          const [first, ...rest] = list;
          if (first === undefined) return;
          expect(versionOf([{ ...first, name: `${first.name}~` }, ...rest], metadata)).not.toBe(version);
          if (first.bytes.length === 0) return;
          const bytes = first.bytes.slice();
          const at = place % bytes.length;
          bytes[at] = (bytes[at] ?? 0) ^ flip;
          expect(versionOf([{ ...first, bytes }, ...rest], metadata)).not.toBe(version);
        },
      ),
      runs,
    );
  });

  it("is the hash of names, zero bytes, contents and metadata in name order", () => {
    const text = (value: string) => new TextEncoder().encode(value);
    // printf 'a.js\0onez.js\0two{}' | sha256sum
    expect(
      versionOf(
        [
          { name: "z.js", bytes: text("two") },
          { name: "a.js", bytes: text("one") },
        ],
        "{}",
      ),
    ).toBe("e4f9bc2bb977c7d2");
  });
});

describe("the kind of a file", () => {
  it.each([
    ["a.wasm", "wasm"],
    ["a.txt", "text"],
    ["a.html", "text"],
    ["a.sql", "text"],
    ["a.bin", "data"],
    ["a.js", undefined],
    ["wasm", undefined],
  ])("%s is %s", (path, kind) => {
    expect(kindOfFile(path)).toBe(kind);
  });
});
