// Comparisons of tokens that do not tell where two of them differ. What a token is, `@cellkit/execution/contract` knows.
import { timingSafeEqual } from "node:crypto";

/** Whether two tokens are equal. Only their lengths can be learnt from the time it takes. */
export function isSameToken(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Whether a token is among others. Each is compared, also after a match. */
export function isAmong(token: Uint8Array, others: readonly Uint8Array[]): boolean {
  let found = false;
  for (const other of others) found = isSameToken(token, other) || found;
  return found;
}
