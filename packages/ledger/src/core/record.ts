/** The record of an id, as it lies in every store: compact JSON of three members, at most 4,096 bytes. */
import type { Owner } from "../ledger.ts";
import { originProblem } from "./origin.ts";

/** The most bytes that a record may have. */
export const MAX_RECORD_BYTES = 4_096;

const MEMBERS = ["version", "backend", "body_hash"] as const;

/** One member of a flat JSON object: a string as its name, a string or a plain integer as its value. */
const MEMBER = /[ \t\n\r]*("(?:[^"\\]|\\.)*")[ \t\n\r]*:[ \t\n\r]*("(?:[^"\\]|\\.)*"|-?[0-9]+)[ \t\n\r]*/y;

/** The text of a new record, byte for byte what every writer of the ledger produces. */
export function formatRecord(owner: Owner): string {
  return JSON.stringify({ version: 1, backend: owner.backend, body_hash: owner.bodyHash });
}

/**
 * Reads a record. White space and the order of members don't matter; anything missing, double or more is a refusal, since
 * a record that is not understood wholly must not be acted upon.
 * @param bytes the whole of it, or its first 4,097 bytes
 */
export function parseRecord(bytes: Uint8Array): { owner: Owner } | { problem: string } {
  if (bytes.length === 0) return { problem: "it is empty" };
  if (bytes.length > MAX_RECORD_BYTES) return { problem: `it has more than ${MAX_RECORD_BYTES} bytes` };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { problem: "it is not UTF-8" };
  }
  const members = parseMembers(text);
  if (members === undefined)
    return { problem: "it is no JSON object of strings and integers, or it was cut off" };
  return checkMembers(members);
}

/** The members of a flat object in their order; undefined if the text is anything else. */
export function parseMembers(text: string): [string, unknown][] | undefined {
  const open = /^[ \t\n\r]*\{/.exec(text);
  if (open === null) return undefined;
  const members: [string, unknown][] = [];
  let at = open[0].length;
  for (;;) {
    MEMBER.lastIndex = at;
    const found = MEMBER.exec(text);
    if (found === null) return undefined;
    try {
      members.push(JSON.parse(`[${found[1]},${found[2]}]`));
    } catch {
      return undefined;
    }
    at = MEMBER.lastIndex + 1;
    const next = text[at - 1];
    if (next === "}") break;
    if (next !== ",") return undefined;
  }
  return /^[ \t\n\r]*$/.test(text.slice(at)) ? members : undefined;
}

function checkMembers(members: readonly [string, unknown][]): { owner: Owner } | { problem: string } {
  const values = new Map(members);
  const foreign = [...values.keys()].find((name) => !MEMBERS.some((known) => known === name));
  if (foreign !== undefined) return { problem: `it has an unknown member ${shown(foreign)}` };
  if (values.size !== members.length) return { problem: "it has the same member twice" };
  const missing = MEMBERS.find((name) => !values.has(name));
  if (missing !== undefined) return { problem: `it lacks ${missing}` };
  const version = values.get("version");
  const backend = values.get("backend");
  const bodyHash = values.get("body_hash");
  if (version !== 1) return { problem: `its version is ${shown(version)}, not 1` };
  if (typeof backend !== "string" || typeof bodyHash !== "string")
    return { problem: "backend and body_hash must be texts" };
  const problem = originProblem(backend);
  return problem === undefined ? { owner: { backend, bodyHash } } : { problem: `its backend is ${problem}` };
}

/** A value for a message: at most 64 characters, and none that a terminal would obey. */
function shown(value: unknown): string {
  return JSON.stringify(value)
    .slice(0, 64)
    .replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
