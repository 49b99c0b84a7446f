/**
 * A digest of bindings that their order does not change, so that two ledgers can be compared by a line of text: the sum,
 * modulo 2^256, of the SHA-256 of each binding. It shows what was lost, added or changed by mistake; it is no proof against
 * somebody who makes up bindings for it.
 */
import { createHash } from "node:crypto";
import type { Owner } from "../ledger.ts";

const MODULUS = 1n << 256n;

/** Takes bindings one by one. */
export class BindingsDigest {
  #sum = 0n;

  add(key: string, { backend, bodyHash }: Owner): void {
    const hex = createHash("sha256")
      .update(JSON.stringify([key, backend, bodyHash]))
      .digest("hex");
    this.#sum = (this.#sum + BigInt(`0x${hex}`)) % MODULUS;
  }

  /** `sum-sha256:` and 64 lowercase hex digits. */
  toString(): string {
    return `sum-sha256:${this.#sum.toString(16).padStart(64, "0")}`;
  }
}
