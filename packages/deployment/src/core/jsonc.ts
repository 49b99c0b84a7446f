/** JSON with comments and trailing commas, read strictly: syntax errors with line and column, no key twice. */
import { type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";

/** The value of a text, or what is wrong with it (one sentence a problem, each with line:column). */
export type JsoncResult =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "problems"; readonly problems: readonly string[] };

/** Line and column of an offset, both from 1, as editors count them. */
function position(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}

/** What each of jsonc-parser's error codes says to a person: `CommaExpected` becomes `comma expected`. */
function sentence(error: ParseError): string {
  return printParseErrorCode(error.error)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
}

/** @param text the whole file; a byte order mark at its start is skipped */
export function parseJsonc(text: string): JsoncResult {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const errors: ParseError[] = [];
  const tree = parseTree(source, errors, { allowTrailingComma: true });
  if (tree === undefined || errors.length > 0) {
    const problems = errors.map((error) => `${position(source, error.offset)} ${sentence(error)}`);
    return { kind: "problems", problems: problems.length > 0 ? problems : ["1:1 the file is empty"] };
  }
  const problems: string[] = [];
  const value = plainValue(tree, (node, problem) => {
    problems.push(`${position(source, node.offset)} ${problem}`);
  });
  return problems.length > 0 ? { kind: "problems", problems } : { kind: "value", value };
}

/** jsonc-parser's own conversion lets the last of two equal keys win and sets the prototype for `__proto__`. */
function plainValue(node: Node, report: (node: Node, problem: string) => void): unknown {
  if (node.type === "array") return (node.children ?? []).map((child) => plainValue(child, report));
  if (node.type !== "object") return node.value;
  const result: Record<string, unknown> = {};
  for (const property of node.children ?? []) {
    const [key, value] = property.children ?? [];
    if (key === undefined || value === undefined) continue;
    const name = String(key.value);
    if (name === "__proto__") report(key, "the key __proto__ is not allowed");
    else if (Object.hasOwn(result, name)) report(key, `the key ${JSON.stringify(name)} appears twice`);
    else result[name] = plainValue(value, report);
  }
  return result;
}
