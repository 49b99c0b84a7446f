// Cap'n Proto's text notation, as far as a workerd config needs it: values are built as data and printed once, so that
// no caller can forget to escape. Field names are ours; only strings come from outside.
// Source: capnproto.org "Schema Language" (constants) and the lexer's rules for string literals (C escapes, bytes).

/** A value of the notation. `embed` names a file beside the config, whose bytes become the value. */
export type CapnpValue =
  | string
  | number
  | boolean
  | { embed: string }
  | { constant: string }
  | { enumerant: string }
  | readonly CapnpValue[]
  | { readonly fields: Readonly<Record<string, CapnpValue | undefined>> };

const encoder = new TextEncoder();
const named: Readonly<Record<number, string>> = { 10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 92: "\\\\" };

/**
 * A string literal whose decoded bytes are the UTF-8 form of `text`; everything outside printable ASCII is written as a
 * byte escape, so neither a quote nor a newline nor a lone surrogate (written as U+FFFD) can end the literal.
 */
export function capnpString(text: string): string {
  let literal = '"';
  for (const byte of encoder.encode(text)) {
    const short = named[byte];
    if (short !== undefined) literal += short;
    else if (byte >= 0x20 && byte < 0x7f) literal += String.fromCharCode(byte);
    else literal += `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return `${literal}"`;
}

/** Prints a value, indented by `depth` steps of two spaces; lists and structs with content take a line for each member. */
export function capnpText(value: CapnpValue, depth = 0): string {
  if (typeof value === "string") return capnpString(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const inner = "  ".repeat(depth + 1);
  const outer = "  ".repeat(depth);
  if (isList(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((item) => inner + capnpText(item, depth + 1)).join(",\n")}\n${outer}]`;
  }
  if ("embed" in value) return `embed ${capnpString(value.embed)}`;
  if ("enumerant" in value) return value.enumerant;
  if ("constant" in value) return `.${value.constant}`;
  const members = Object.entries(value.fields).flatMap(([name, member]) =>
    member === undefined ? [] : [`${name} = ${capnpText(member, depth + 1)}`],
  );
  const line = `(${members.join(", ")})`;
  if (!line.includes("\n") && line.length + outer.length <= 100) return line;
  return `(\n${members.map((member) => inner + member).join(",\n")}\n${outer})`;
}

function isList(value: CapnpValue): value is readonly CapnpValue[] {
  return Array.isArray(value);
}

/** A struct value; members that are `undefined` are left out. */
export function struct(fields: Readonly<Record<string, CapnpValue | undefined>>): CapnpValue {
  return { fields };
}
