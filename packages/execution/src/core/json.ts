// JSON as the execution plane reads it: stricter than JSON.parse (no duplicate member, no lone surrogate, no byte-order mark,
// less than 128 levels), and exact: an integer that a double cannot hold becomes a bigint. `context.source` and
// `JSON.rawJSON` (ECMAScript's source text access, in Node since 21) give and take the digits themselves.
import { JsonError } from "../errors.ts";
import { decodeUtf8 } from "./utf8.ts";

/** A number that is written with a fraction, an exponent or as `-0`: never an integer of this protocol. Keeps its digits. */
export class JsonDecimal {
  /** As it was written. */
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }

  toJSON(): unknown {
    return rawJson(this.source);
  }
}

type SourceReviver = (key: string, value: unknown, context: { source?: string }) => unknown;
const parseWithSource = JSON.parse as (text: string, reviver: SourceReviver) => unknown;
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };

/** The most levels of a JSON text. One more and it is refused; the reference's parser stops there, too. */
export const maxJsonLevels = 127;
const integer = /^(?:0|-?[1-9]\d*)$/;
/** Where structure may be: an expression for whole strings would run out of stack in one of some megabytes. */
const mark = /["{}[\],]/g;
const quote = 0x22;
const backslash = 0x5c;

/**
 * The value of a JSON text. Integers within ±(2^53−1) are numbers, larger ones bigints, other numbers {@link JsonDecimal}.
 *
 * @throws {@link JsonError} (`CELLKIT_EXECUTION_JSON`) for anything that is not one strict JSON value in UTF-8. The message
 * holds no part of the text.
 */
export function parseJson(input: Uint8Array | string): unknown {
  const text = typeof input === "string" ? input : decodeUtf8(input);
  if (text === undefined) throw new JsonError("is not UTF-8");
  try {
    JSON.parse(text);
  } catch {
    // The cause is not kept: V8's message quotes the text.
    throw new JsonError("is not JSON");
  }
  checkStructure(text);
  return parseWithSource(text, (_key, value, context) => {
    if (typeof value === "string" && !value.isWellFormed()) throw new JsonError("has half a surrogate pair");
    return typeof value === "number" ? exact(value, context.source) : value;
  });
}

/**
 * The value of a JSON text with the numbers of {@link parseJson}, and nothing else of its strictness: a member may come twice, and
 * the last one counts, as the reference's untyped reader has it. For answers in which only known members are looked at.
 *
 * @throws SyntaxError for a text that is no JSON; its message quotes the text
 */
export function parseExactJson(text: string): unknown {
  return parseWithSource(text, (_key, value, context) =>
    typeof value === "number" ? exact(value, context.source) : value,
  );
}

/** The JSON text of a value: compact, with the digits of bigints. What JSON cannot carry is left out, as by JSON.stringify. */
export function stringifyJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "bigint" ? rawJson(String(member)) : member,
  );
}

function exact(value: number, source = String(value)): number | bigint | JsonDecimal {
  if (!integer.test(source)) return new JsonDecimal(source);
  return Number.isSafeInteger(value) ? value : BigInt(source);
}

/** The strings, brackets and commas of a text that is known to be JSON, in order. */
function* structure(text: string): Generator<string> {
  const marks = new RegExp(mark);
  for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
    if (found[0] === '"') {
      marks.lastIndex = stringEnd(text, found.index);
      yield text.slice(found.index, marks.lastIndex);
    } else yield found[0];
  }
}

/** Where the string that begins at a quotation mark ends. */
function stringEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at + 1;
}

/** Finds duplicate members and too many levels in a text that is known to be JSON, so strings and brackets suffice. */
function checkStructure(text: string): void {
  /** For each open bracket: the members of an object so far, or undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let expectsKey = false;
  for (const found of structure(text)) {
    if (found === "{" || found === "[") {
      if (open.push(found === "{" ? new Set() : undefined) > maxJsonLevels) {
        throw new JsonError(`has more than ${maxJsonLevels} levels`);
      }
      expectsKey = found === "{";
    } else if (found === "}" || found === "]") {
      open.pop();
      expectsKey = false;
    } else if (found === ",") {
      expectsKey = open.at(-1) !== undefined;
    } else if (expectsKey) {
      expectsKey = false;
      addKey(open.at(-1), JSON.parse(found) as string);
    }
  }
}

function addKey(keys: Set<string> | undefined, key: string): void {
  if (!key.isWellFormed()) throw new JsonError("has half a surrogate pair");
  if (keys?.has(key) === true) throw new JsonError("names a member twice");
  keys?.add(key);
}
