// What must be fresh: nonces, and the ids of requests.

import { randomBytes } from "node:crypto";

const nonceBytes = 16;
const nonceRandomBytes = 12;
const processBytes = 8;

/** A nonce of the protocol: 16 random bytes in 32 lower-case hex digits. */
export function nonce(): string {
  return randomBytes(nonceBytes).toString("hex");
}

/** The random part of a nonce that tells of an offer of records: 12 bytes in 24 lower-case hex digits. */
export function nonceRandom(): string {
  return randomBytes(nonceRandomBytes).toString("hex");
}

/** Makes request ids as nodes do (spec A5): 64 random bits of this maker, then a counter from 1. */
export function requestIds(): () => string {
  const process = randomBytes(processBytes).toString("hex");
  let count = 0;
  return () => {
    count += 1;
    return process + count.toString(16).padStart(2 * processBytes, "0");
  };
}
