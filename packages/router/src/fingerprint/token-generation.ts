// A short name for a token's present value. It tells replicas whether they have the same token; it must not help anybody to find the
// token out, not even one that a person made up. So it is slow to compute, different for each ledger and role, and cut to 16 bits:
// of any list of guesses, one in 65,536 fits by chance, and the guess that is right looks like all of those.
import { createHash, scrypt } from "node:crypto";
import type { TokenRole } from "../errors.ts";

const bytes = 2;
/** 16 MiB and some 50 ms, in a thread beside the event loop, once for each new value. */
const cost = { N: 16_384, r: 8, p: 1, maxmem: 33_554_432 };

/** Names values of tokens within one ledger. */
export class TokenGenerations {
  readonly #ledgerId: string;
  /** By role and a hash of the token: secrets themselves are not kept longer than their files say. */
  readonly #known = new Map<string, string>();

  constructor(ledgerId: string) {
    this.#ledgerId = ledgerId;
  }

  /** The generations of a role's tokens, in an order of their own; `none` where there is no token. */
  async of(role: TokenRole, tokens: readonly Uint8Array[]): Promise<string> {
    if (tokens.length === 0) return "none";
    const found: string[] = [];
    for (const token of tokens) found.push(await this.#one(role, token));
    return found.sort().join("+");
  }

  async #one(role: TokenRole, token: Uint8Array): Promise<string> {
    const key = `${role} ${createHash("sha256").update(token).digest("hex")}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    scrypt(token, `cellkit-router ${role} ${this.#ledgerId}`, bytes, cost, (error, derived) =>
      error === null ? resolve(derived) : reject(error),
    );
    const name = (await promise).toString("hex");
    if (this.#known.size >= 16) this.#known.clear();
    this.#known.set(key, name);
    return name;
  }
}
