// The head of a request, from bytes (execution API, sections 2.2 and 2.3). Lines are judged one by one as they come, so the first
// violation wins, and it is known before the head is whole. What is over a limit ends the connection without a word.
import { trimWhiteSpace, trimWhiteSpaceEnd } from "@cellkit/execution/contract";
import type { Refusal } from "./answer.ts";

/** The longest line, line feed included; a byte of 0x80 or more counts as two. */
const maxLineUnits = 8192;
/** The most header lines. */
const maxHeaderCount = 64;

/** A head that broke no rule. Texts have one character a byte (Latin-1). */
export interface RequestHead {
  readonly method: string;
  /** As sent: nothing is decoded or normalized. */
  readonly path: string;
  /** The whole value, scheme included. */
  readonly authorization: string | undefined;
  /** `X-Celln-Backend`. */
  readonly pin: string | undefined;
  /** 0 where none was declared. Above 2^53 it is rounded, and refused by every route. */
  readonly contentLength: number;
}

/** What the bytes so far come to. `rest` is what followed the head. */
export type HeadRead =
  | { readonly kind: "more" }
  | { readonly kind: "head"; readonly head: RequestHead; readonly rest: Buffer }
  | { readonly kind: "refused"; readonly refusal: Refusal; readonly rest: Buffer }
  | { readonly kind: "silent" };

interface Fields {
  authorization?: string;
  pin?: string;
  parent?: string;
  preference?: string;
  contentLength?: number;
}

const lineFeed = 0x0a;
const largestLength = 0xffff_ffff_ffff_ffffn;

/** Reads one head. After an answer other than `more` it is of no further use. */
export class HeadReader {
  readonly #fields: Fields = {};
  /** The begin of a line whose end has not come. */
  #begun: Buffer | undefined;
  #begunUnits = 0;
  #headerCount = 0;
  #line: { method: string; path: string } | undefined;

  /** Takes the next bytes, as many as came. */
  push(chunk: Buffer): HeadRead {
    let at = 0;
    for (;;) {
      const end = chunk.indexOf(lineFeed, at);
      const piece = chunk.subarray(at, end === -1 ? chunk.length : end);
      this.#begunUnits += unitsOf(piece);
      // One more is needed for the line feed.
      if (this.#begunUnits >= maxLineUnits) return { kind: "silent" };
      if (end === -1) {
        if (piece.length > 0) this.#begun = joined(this.#begun, piece);
        return { kind: "more" };
      }
      const line = trimWhiteSpaceEnd(joined(this.#begun, piece).toString("latin1"));
      this.#begun = undefined;
      this.#begunUnits = 0;
      at = end + 1;
      const read = this.#takeLine(line);
      if (read === "silent") return { kind: "silent" };
      if (read === "end") return { kind: "head", head: this.#head(), rest: chunk.subarray(at) };
      if (read !== undefined) return { kind: "refused", refusal: read, rest: chunk.subarray(at) };
    }
  }

  #takeLine(line: string): Refusal | "silent" | "end" | undefined {
    if (this.#line === undefined) {
      this.#line = parseLine(line);
      return this.#line === undefined ? "malformed-line" : undefined;
    }
    if (line === "") return "end";
    this.#headerCount += 1;
    if (this.#headerCount > maxHeaderCount) return "silent";
    const colon = line.indexOf(":");
    if (colon === -1) return "invalid-header";
    return takeField(this.#fields, line.slice(0, colon).toLowerCase(), line, colon + 1);
  }

  #head(): RequestHead {
    const { authorization, pin, contentLength = 0 } = this.#fields;
    const { method, path } = this.#line as { method: string; path: string };
    return { method, path, authorization, pin, contentLength };
  }
}

function joined(begun: Buffer | undefined, piece: Buffer): Buffer {
  return begun === undefined ? piece : Buffer.concat([begun, piece]);
}

function unitsOf(bytes: Buffer): number {
  let units = bytes.length;
  for (const byte of bytes) units += byte >> 7;
  return units;
}

/** The version is not looked at. */
function parseLine(line: string): { method: string; path: string } | undefined {
  const space = line.indexOf(" ");
  if (space === -1) return undefined;
  const [path = ""] = trimWhiteSpace(line.slice(space)).split(/\p{White_Space}/u, 1);
  return { method: line.slice(0, space), path };
}

/** Keeps what a header says, if it is one that counts; all others are neither read nor forwarded. */
function takeField(fields: Fields, name: string, line: string, valueAt: number): Refusal | undefined {
  switch (name) {
    case "authorization":
      if (fields.authorization !== undefined) return "duplicate-authorization";
      fields.authorization = trimWhiteSpace(line.slice(valueAt));
      return undefined;
    case "x-celln-backend":
      if (fields.pin !== undefined) return "duplicate-pin";
      fields.pin = trimWhiteSpace(line.slice(valueAt));
      return undefined;
    case "x-celln-parent-incarnation":
      if (fields.parent !== undefined) return "duplicate-parent";
      fields.parent = trimWhiteSpace(line.slice(valueAt));
      return undefined;
    case "prefer":
      if (fields.preference !== undefined || trimWhiteSpace(line.slice(valueAt)) !== "respond-async")
        return "invalid-preference";
      fields.preference = "respond-async";
      return undefined;
    case "content-length": {
      const length =
        fields.contentLength === undefined ? parseLength(trimWhiteSpace(line.slice(valueAt))) : undefined;
      if (length === undefined) return "invalid-length";
      fields.contentLength = length;
      return undefined;
    }
    case "transfer-encoding":
      return "transfer-encoding";
    default:
      return undefined;
  }
}

/** Digits that fit 64 bits, leading zeros allowed. */
function parseLength(text: string): number | undefined {
  const digits = /^0*(\d{1,20})$/.exec(text)?.[1];
  return digits === undefined || BigInt(digits) > largestLength ? undefined : Number(digits);
}
