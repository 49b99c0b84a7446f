import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, inject, it } from "vitest";
import { shellWord } from "../src/shell-word.ts";

it.each(["cells", "http://127.0.0.1:9000", "s3://cells/fleet", "CK01AB"])("%s stays as it is", (text) => {
  expect(shellWord(text)).toBe(text);
});

it("a shell reads every word as the text that it was", () => {
  const texts = fc.sample(fc.string({ unit: "binary-ascii", minLength: 0, maxLength: 20 }), {
    seed: inject("seed"),
    numRuns: 200,
  });
  const sound = [
    "it's",
    "$HOME `id` \\",
    "a b",
    "*",
    "-n",
    ...texts.map((text) => text.replaceAll("\0", "")),
  ];
  const script = sound.map((text) => `printf '%s\\0' ${shellWord(text)}`).join("\n");
  const read = execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
  expect(read).toEqual(sound);
});
