// The keys of one tunnel (docs/protocol/records.md, "Keys"): HKDF-SHA-256 (RFC 5869) from the fleet key, salted with the
// hash of the transcript, so that whatever was changed on the way changes every key.
import { createHash, createHmac, createSecretKey, hkdfSync } from "node:crypto";
import type { FleetKey, SecretKey } from "./fleet-key.ts";

const keysLabel = "cellkit-records-1 keys";
const rekeyLabel = "cellkit-records-1 rekey";

const keyBytes = 32;
/** Length of an AES-GCM nonce (NIST SP 800-38D §8.2.1). */
export const ivBytes = 12;
const directionBytes = keyBytes + ivBytes;

/** What seals and opens one direction of a tunnel. */
export interface DirectionKeys {
  /** AES-256-GCM key. */
  readonly key: SecretKey;
  /** XORed with the sequence number of a record, it is the record's nonce. */
  readonly iv: Uint8Array;
}

/** All keys of one tunnel. */
export interface RecordKeys {
  /** For what the end that dialled sends. */
  readonly dialler: DirectionKeys;
  /** For what the end that listened sends. */
  readonly listener: DirectionKeys;
  /**
   * 64 lower-case hex digits by which the listener shows, in its 101, that it holds the fleet key and saw the same
   * transcript. The dialler compares before it reads on.
   */
  readonly proof: string;
}

/**
 * Derives the keys of a tunnel.
 *
 * @param input.key the fleet key that signed the establishment
 * @param input.transcript the bytes of the handshake, from `recordTranscript`
 * @see RFC 5869
 */
export function deriveRecordKeys(input: { readonly key: FleetKey; readonly transcript: string }): RecordKeys {
  const salt = createHash("sha256").update(input.transcript).digest();
  const secret = createSecretKey(input.key.reveal());
  const block = new Uint8Array(hkdfSync("sha256", secret, salt, keysLabel, 2 * directionBytes + keyBytes));
  const proofKey = createSecretKey(block.subarray(2 * directionBytes));
  return {
    dialler: directionKeys(block.subarray(0, directionBytes)),
    listener: directionKeys(block.subarray(directionBytes, 2 * directionBytes)),
    proof: createHmac("sha256", proofKey).update(input.transcript).digest("hex"),
  };
}

/** The keys that replace these after so many records; the old ones cannot be found from the new ones. */
export function nextDirectionKeys({ key }: DirectionKeys): DirectionKeys {
  return directionKeys(new Uint8Array(hkdfSync("sha256", key, new Uint8Array(), rekeyLabel, directionBytes)));
}

function directionKeys(block: Uint8Array): DirectionKeys {
  return { key: createSecretKey(block.subarray(0, keyBytes)), iv: block.slice(keyBytes) };
}
