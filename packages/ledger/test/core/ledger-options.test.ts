import { expect, it } from "vitest";
import { checkKey, checkQuarantine, resolveLedgerOptions } from "../../src/core/ledger-options.ts";

const OPTION = "CELLKIT_LEDGER_OPTION";
const now = () => 7;
const refusal = (message: RegExp) =>
  expect.objectContaining({ code: OPTION, message: expect.stringMatching(message) });

it("what is not given has its default", () => {
  expect(resolveLedgerOptions({}, { capacity: 100_000, now })).toEqual({
    name: "executions",
    capacity: 100_000,
    retirable: false,
    requireExisting: false,
    now,
  });
});

it("what is given is taken, undefined is not", () => {
  const given = { name: "scoped-ops", capacity: 1, retirable: true, requireExisting: true, now: () => 8 };
  expect(resolveLedgerOptions(given, { capacity: undefined, now })).toEqual(given);
  const open = resolveLedgerOptions({ name: undefined, capacity: undefined }, { capacity: undefined, now });
  expect([open.name, open.capacity]).toEqual(["executions", undefined]);
});

it.each(["", "A", "a_b", "a.b", "a/b", "..", "a\n", "a".repeat(65)])("a ledger is not named %j", (name) => {
  expect(() => resolveLedgerOptions({ name }, { capacity: undefined, now })).toThrow(refusal(/1 to 64 of/));
});

it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("no capacity is %d", (capacity) => {
  expect(() => resolveLedgerOptions({ capacity }, { capacity: undefined, now })).toThrow(
    refusal(/integer of 1 or more/),
  );
});

it.each<[string, unknown]>([
  ["name", 5],
  ["retirable", "false"],
  ["requireExisting", 1],
  ["now", 7],
])("%s is not %j", (option, value) => {
  expect(() => resolveLedgerOptions({ [option]: value }, { capacity: undefined, now })).toThrow(
    expect.objectContaining({ code: OPTION }),
  );
});

it("a quarantine is a number of milliseconds, 0 or more", () => {
  for (const ok of [0, 0.5, 600_000]) expect(() => checkQuarantine(ok)).not.toThrow();
  for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => checkQuarantine(bad)).toThrow(refusal(/quarantineMs/));
});

it("a key is 64 lowercase hex digits", () => {
  expect(() => checkKey("0123456789abcdef".repeat(4))).not.toThrow();
  for (const bad of [
    "",
    "a".repeat(63),
    "a".repeat(65),
    "A".repeat(64),
    `${"a".repeat(63)}g`,
    `${"a".repeat(64)}\n`,
    ["a".repeat(64)] as unknown as string,
  ])
    expect(() => checkKey(bad)).toThrow(refusal(/64 lowercase hex digits/));
});
