// The one secret of a fleet, and the JSON object that holds it in the bucket (`fleet/peer-auth.json`).
import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { FleetKeyError } from "../errors.ts";

/** What `node:crypto` calls a secret key object. */
export type SecretKey = ReturnType<typeof createSecretKey>;

/** Length of a fleet key. */
export const fleetKeyBytes = 32;

/** The object is under 100 bytes; this is room for white space, and a bound for what is parsed. */
const maxTextLength = 4_096;

/** What is printed in place of the key, wherever a key is printed. */
const shownAs = "[fleet key]";

const keyObject = z.strictObject({ version: z.literal(1), key: z.string().regex(/^[0-9a-f]{64}$/) });

/**
 * The 32 bytes that all nodes of a fleet share. Printing, inspecting or serialising it as JSON shows `[fleet key]`, so
 * that it reaches no log by accident.
 */
export class FleetKey {
  /** A key object: an HMAC with one costs a fifth of an HMAC with bytes, which Node makes into an object each time. */
  readonly #secret: SecretKey;

  /**
   * @param bytes exactly 32, from the operating system's random source; copied
   * @throws FleetKeyError CELLKIT_PEER_FLEET_KEY when there are not exactly 32
   */
  constructor(bytes: Uint8Array) {
    if (bytes.length !== fleetKeyBytes) {
      throw new FleetKeyError(`holds a key of ${bytes.length} bytes instead of ${fleetKeyBytes}`);
    }
    this.#secret = createSecretKey(bytes);
  }

  /** HMAC-SHA-256 of a text (as UTF-8) under the key. */
  mac(text: string): Buffer {
    return createHmac("sha256", this.#secret).update(text).digest();
  }

  /** Same as {@link mac}, in 64 lower-case hex digits. */
  macHex(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("hex");
  }

  /** A copy of the bytes, for what must be written to the bucket or derived from them. Never log it. */
  reveal(): Uint8Array {
    return this.#secret.export();
  }

  /** Whether two keys are the same, in constant time. */
  equals(other: FleetKey): boolean {
    return timingSafeEqual(this.reveal(), other.reveal());
  }

  toString(): string {
    return shownAs;
  }

  toJSON(): string {
    return shownAs;
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return shownAs;
  }
}

/**
 * Reads a fleet key object: `{"version":1,"key":"<64 lower-case hex digits>"}`, members in any order, no other member,
 * none twice.
 *
 * @throws FleetKeyError CELLKIT_PEER_FLEET_KEY for anything else; the message holds no part of the text
 */
export function parseFleetKey(text: string): FleetKey {
  if (text.length > maxTextLength) throw new FleetKeyError(`is longer than ${maxTextLength} characters`);
  const parsed = keyObject.safeParse(parseJson(text));
  if (!parsed.success) throw new FleetKeyError(`is not valid: ${problemOf(parsed.error)}`);
  // Two member names and one string value are six quotes; a member given twice (the last one would win) makes more.
  if (text.split('"').length !== 7) throw new FleetKeyError("is not valid: a member is given twice");
  return new FleetKey(Buffer.from(parsed.data.key, "hex"));
}

/** The text of the object that holds this key, byte for byte as every node writes it. */
export function formatFleetKey(key: FleetKey): string {
  return `{"version":1,"key":"${Buffer.from(key.reveal()).toString("hex")}"}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // V8 quotes the text in its message: the cause is dropped on purpose, as the text is a secret.
    throw new FleetKeyError("is not JSON");
  }
}

/** Which rule was broken; zod's own messages may quote the value. */
function problemOf(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue?.code === "unrecognized_keys") return "it has an unknown member";
  if (issue?.path[0] === "version") return "the version is not 1";
  if (issue?.path[0] === "key") return "the key is not 64 lower-case hex digits";
  return "it is not an object";
}
