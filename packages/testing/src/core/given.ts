// What a test gave, held against what there is. A test need not be typed, and a slip of the pen that passes in silence makes one that
// cannot fail.
import { TestingOptionError } from "../errors.ts";

/** What a member may be. */
export interface MemberRule {
  fits(value: unknown): boolean;
  /** What fits, in words, for the error. */
  readonly give: string;
  readonly isNeeded?: boolean;
}

/** The members that something may have. */
export type MemberRules = Readonly<Record<string, MemberRule>>;

export const text: MemberRule = {
  fits: (value) => typeof value === "string" && value.trim() !== "",
  give: "a text that is not blank",
};
export const flag: MemberRule = { fits: (value) => typeof value === "boolean", give: "true or false" };
export const count: MemberRule = { fits: isCount, give: "an integer from 0" };
export const milliseconds: MemberRule = {
  fits: (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
  give: "a number from 0",
};
export const callable: MemberRule = { fits: (value) => typeof value === "function", give: "a function" };
/** Whatever there is. */
export const anything: MemberRule = { fits: (value) => value !== undefined, give: "something" };

export function oneOf(...words: readonly string[]): MemberRule {
  return { fits: (value) => words.some((word) => word === value), give: words.join(", ") };
}

export function needed(rule: MemberRule): MemberRule {
  return { ...rule, isNeeded: true };
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * Holds something against the members it may have. One that may be left out may also be undefined.
 *
 * @param name what it is called in the error
 * @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`)
 */
export function checkMembers(name: string, given: unknown, rules: MemberRules): void {
  if (typeof given !== "object" || given === null) {
    throw new TestingOptionError(name, `is ${shown(given)}; give an object`);
  }
  const unknown = Object.keys(given).find((member) => !Object.hasOwn(rules, member));
  if (unknown !== undefined) {
    const known = Object.keys(rules).join(", ") || "none";
    throw new TestingOptionError(name, `has no member ${JSON.stringify(unknown)}; it may have: ${known}`);
  }
  const values = given as Readonly<Record<string, unknown>>;
  for (const [member, { fits, give, isNeeded = false }] of Object.entries(rules)) {
    const { [member]: value } = values;
    const isRight = value === undefined ? !isNeeded : fits(value);
    if (!isRight) throw new TestingOptionError(`${name}.${member}`, `is ${shown(value)}; give ${give}`);
  }
}

/** A value for a message; of what may be long or secret only its type. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  return value === null || typeof value === "number" ? String(value) : typeof value;
}
