// The head of a request as a dispatcher reads it (execution API, sections 2.2, 2.3 and 10.1): stricter about the fields that
// matter to it, and blind to all others.
import { trimWhiteSpace, trimWhiteSpaceEnd } from "@cellkit/execution/contract";

/** Longest line, line feed included. */
const maxLineBytes = 8192;
const maxFieldCount = 64;
/** Of scoped operations. They are of no use here, but a head in which one is wrong is none. */
const permits = ["x-celln-execution-permit", "x-celln-model-permit"];
const largestLength = 0xffff_ffff_ffff_ffffn;

/** A head that was understood. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  /** As they came: names with their capitals, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Above 2^53 it is rounded. */
  readonly contentLength: number;
  readonly authorization: string | undefined;
}

/** What bytes are so far. `bodyAt` is where the head ends. */
export type HeadRead =
  | { readonly kind: "more" }
  /** The connection ends without an answer. */
  | { readonly kind: "silent" }
  | { readonly kind: "malformed" }
  | { readonly kind: "head"; readonly head: RequestHead; readonly bodyAt: number };

/**
 * Reads the head at the begin of bytes.
 *
 * @param ended whether no more will come; then the head ends with them
 */
export function readHead(bytes: Buffer, ended: boolean): HeadRead {
  const lines: string[] = [];
  let at = 0;
  for (;;) {
    const feed = bytes.indexOf(10, at);
    const end = feed < 0 ? bytes.length : feed + 1;
    if (latin1Length(bytes.subarray(at, end)) > maxLineBytes) {
      return { kind: "silent" };
    }
    if (feed < 0 && !ended) return { kind: "more" };
    const line = trimWhiteSpaceEnd(bytes.toString("latin1", at, end));
    at = end;
    if (lines.length > 0 && line === "") break;
    if (lines.push(line) > maxFieldCount + 1) return { kind: "silent" };
    if (feed < 0) break;
  }
  return parse(lines, at);
}

function parse([first = "", ...rest]: readonly string[], bodyAt: number): HeadRead {
  const space = first.indexOf(" ");
  if (space < 0) return { kind: "malformed" };
  const [path = ""] = trimWhiteSpace(first.slice(space)).split(/\p{White_Space}/u, 1);
  const fields = rest.flatMap((line): [string, string][] => {
    const colon = line.indexOf(":");
    return colon < 0 ? [] : [[line.slice(0, colon), trimWhiteSpace(line.slice(colon + 1))]];
  });
  const valuesOf = (wanted: string) =>
    fields.flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []));
  const authorizations = valuesOf("authorization");
  const lengths = valuesOf("content-length");
  const [length = "0"] = lengths;
  const isLength = /^\d+$/.test(length) && BigInt(length) <= largestLength;
  const hasPermits = permits.every((name) => isPermit(valuesOf(name)));
  const isReadable = isLength && hasPermits && lengths.length < 2 && authorizations.length < 2;
  if (!isReadable) return { kind: "silent" };
  const [authorization] = authorizations;
  const head = { method: first.slice(0, space), path, fields, contentLength: Number(length), authorization };
  return { kind: "head", head, bodyAt };
}

/** At most one, and that of visible characters. */
function isPermit(values: readonly string[]): boolean {
  return values.length < 2 && values.every((value) => /^[\x20-\x7e]+$/.test(value));
}

/** A byte above 0x7f counts as two. */
function latin1Length(line: Uint8Array): number {
  if (line.length * 2 <= maxLineBytes) return line.length;
  return line.reduce((length, byte) => length + (byte < 0x80 ? 1 : 2), 0);
}
