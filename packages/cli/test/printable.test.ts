import { expect, it } from "vitest";
import { jsonLine, printable } from "../src/printable.ts";

it.each([
  ["an escape sequence", "\u001b[2J", "\\u001b[2J"],
  ["the other kind of control characters", "\u009b2J\u0085", "\\u009b2J\\u0085"],
  ["a line break and a delete", "a\nb\u007f", "a\\u000ab\\u007f"],
  ["a turn of the direction", "a\u202eb", "a\\u202eb"],
  ["half of a surrogate pair", "a\ud800b", "a\\ud800b"],
  ["a separator of lines", "a\u2028b", "a\\u2028b"],
  ["a format character of two units", "\u{e0001}", "\\udb40\\udc01"],
])("%s is shown and not obeyed", (_, text, shown) => {
  expect(printable(text)).toBe(shown);
  expect(JSON.parse(jsonLine({ text }))).toEqual({ text });
  expect(jsonLine({ text })).toMatch(/^[\x20-\x7e]+$/);
});

it("all other text stays", () => {
  expect(printable("Grüße, 世界 🎉")).toBe("Grüße, 世界 🎉");
});
