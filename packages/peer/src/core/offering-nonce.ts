// The offer of records is a header that no signature covers. So that it cannot be taken off unseen, the signed nonce of
// a dialler that offers says so too (docs/protocol/records.md, "The signed nonce").
import { timingSafeEqual } from "node:crypto";
import { PeerOptionError } from "../errors.ts";
import type { FleetKey } from "./fleet-key.ts";

const markDomain = "cellkit-records-1 offer";
const randomDigits = 24;
const markDigits = 8;
const randomForm = /^[0-9a-f]{24}$/;

function markOf(key: FleetKey, random: string): string {
  return key.macHex(`${markDomain}\n${random}`).slice(0, markDigits);
}

/**
 * The signed nonce of an establishment that offers records. Who does not have the key sees no difference to another one.
 *
 * @param key the one that signs the establishment
 * @param random fresh; 12 random bytes in 24 lower-case hex digits
 * @throws PeerOptionError CELLKIT_PEER_OPTION for another form
 */
export function offeringNonce(key: FleetKey, random: string): string {
  if (!randomForm.test(random)) throw new PeerOptionError("random", "is not 24 lower-case hex digits");
  return random + markOf(key, random);
}

/**
 * Whether a signed nonce says that its dialler offered records; of other nonces, one in 2^32 does as well.
 *
 * @param key the one that signed
 */
export function isOfferingNonce(key: FleetKey, nonce: string): boolean {
  const [given, mark] = [nonce.slice(randomDigits), markOf(key, nonce.slice(0, randomDigits))];
  return given.length === markDigits && timingSafeEqual(Buffer.from(given), Buffer.from(mark));
}
