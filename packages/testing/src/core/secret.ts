import { createHash, timingSafeEqual } from "node:crypto";

/** Whether two texts are the same, in a time that tells nothing of where they differ. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
