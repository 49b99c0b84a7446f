// What a man in the middle does to the bytes of one direction. Each stroke is done once, and always changes what is passed on.

/** Strokes at bytes that travel in records. */
export const strokes = ["flip", "drop", "repeat", "replay", "reorder", "insert", "truncate"] as const;

/** Strokes at the heads with which a tunnel is opened. */
export const headStrokes = ["strip-offer", "strip-answer", "spoil-head"] as const;

export type Stroke = (typeof strokes)[number] | (typeof headStrokes)[number];

/** Whether a stroke is at the head of a connection, and not at records. */
export function isForHead(stroke: Stroke): boolean {
  return headStrokes.some((each) => each === stroke);
}

/** Whether a chunk has what a stroke is at: a head may be one that refuses the tunnel. */
export function canStrike(stroke: Stroke, chunk: Uint8Array): boolean {
  const text = Buffer.from(chunk).toString("latin1");
  if (stroke === "strip-offer" || stroke === "strip-answer") return offer.test(text);
  return stroke !== "spoil-head" || /[0-9a-f]{32}/.test(text);
}

/** Numbers from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number;

/** What is passed on instead of a chunk. `ends` closes the direction behind it; `held` is to follow the next chunk. */
export interface Struck {
  readonly passed: readonly Uint8Array[];
  readonly held?: Uint8Array;
  readonly ends?: boolean;
}

const offer = /^x-cellkit-records:.*\r\n/im;

/** Most bytes that one stroke drops, repeats or inserts. */
const mostBytes = 64;

/** Does a stroke to a chunk. `before` is the chunk of the same direction that was passed on before it. */
export function strike(stroke: Stroke, chunk: Uint8Array, before: Uint8Array, random: Random): Struck {
  const at = whole(random, chunk.length);
  const [head, tail] = [chunk.subarray(0, at), chunk.subarray(at)];
  const count = 1 + whole(random, Math.min(mostBytes, tail.length));
  switch (stroke) {
    case "flip":
      return { passed: [flipped(chunk, at, random)] };
    case "drop":
      return { passed: [head, tail.subarray(count)] };
    case "repeat":
      return { passed: [head, tail.subarray(0, count), tail] };
    case "replay":
      return { passed: [chunk, before.length > 0 ? before : chunk] };
    case "reorder":
      return { passed: [], held: chunk };
    case "insert":
      return { passed: [head, Uint8Array.from({ length: count }, () => whole(random, 256)), tail] };
    case "truncate":
      return { passed: [head], ends: true };
    case "strip-offer":
    case "strip-answer":
      return { passed: [withoutOffer(chunk)] };
    case "spoil-head":
      return { passed: [spoiled(chunk, random)] };
  }
}

/** A chunk cut in two, the second part first: for one that was held and behind which nothing came. */
export function turned(chunk: Uint8Array): Uint8Array[] {
  const middle = Math.ceil(chunk.length / 2);
  return [chunk.subarray(middle), chunk.subarray(0, middle)];
}

/** A number from 0 to `count - 1`. */
export function whole(random: Random, count: number): number {
  return Math.floor(random() * count);
}

function flipped(chunk: Uint8Array, at: number, random: Random): Uint8Array {
  const changed = Uint8Array.from(chunk);
  changed[at] = (changed[at] ?? 0) ^ (1 << whole(random, 8));
  return changed;
}

function withoutOffer(chunk: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(chunk).toString("latin1").replace(offer, ""), "latin1");
}

/** Another digit in one of the values that the two ends made: signature, digest, nonces, proof. */
function spoiled(chunk: Uint8Array, random: Random): Uint8Array {
  const text = Buffer.from(chunk).toString("latin1");
  const digits = [...text.matchAll(/[0-9a-f]{32,64}/g)].flatMap(({ index, 0: run }) =>
    Array.from(run, (_, offset) => index + offset),
  );
  const at = digits[whole(random, digits.length)];
  if (at === undefined) throw new TypeError(`no digit to spoil in ${text}`);
  const other = (Number.parseInt(text[at] ?? "0", 16) + 1 + whole(random, 15)) % 16;
  return Buffer.from(text.slice(0, at) + other.toString(16) + text.slice(at + 1), "latin1");
}
