/** What a case of the suite is made of. It needs no test framework, and throws errors of its own. */
import { inspect, isDeepStrictEqual } from "node:util";
import { type Digest, loadDigest } from "../digest.ts";
import { ConformanceError } from "../errors.ts";
import type { LedgerOptions, StoredLedger } from "../ledger.ts";

/** Opens the ledger at a place; two that are opened at one place with one name must be the same ledger. */
export type OpenLedger = (place: string, options?: LedgerOptions) => Promise<StoredLedger>;

/** What a store cannot do, each with the reason; cases that need it are left out. */
export type ConformanceFeature = "capacity" | "retiring" | "requireExisting";

/** What the suite must know of a store. */
export interface ConformanceFeatures {
  /** Writes bytes where the record of a key lies, in the ledger of the default name. Without it no corrupt record is tried. */
  plant?: ((place: string, key: string, bytes: Uint8Array) => Promise<void>) | undefined;
  /** What the store cannot do, and why: `{ capacity: "a bucket has no counter" }`. */
  lacks?: Partial<Record<ConformanceFeature, string>> | undefined;
}

/** One rule, as a test of any framework: `it(name, run)`. */
export interface ConformanceCase {
  /** A sentence that states the rule. */
  readonly name: string;
  /** @throws ConformanceError (CELLKIT_LEDGER_CONFORMANCE) that says what was expected */
  run(): Promise<void>;
}

/** One rule, before it knows the store. */
export interface Rule {
  name: string;
  needs?: readonly (ConformanceFeature | "plant")[];
  run(scene: Scene): Promise<void>;
}

/** Where one case plays: a fresh place, and ledgers that are closed at its end. */
class Scene implements AsyncDisposable {
  /** BLAKE3, for keys and bodies. */
  readonly digest: Digest;
  readonly #openLedger: OpenLedger;
  readonly #place: string;
  readonly #plant: ConformanceFeatures["plant"];
  readonly #ledgers: StoredLedger[] = [];

  constructor(openLedger: OpenLedger, place: string, digest: Digest, plant: ConformanceFeatures["plant"]) {
    this.#openLedger = openLedger;
    this.#place = place;
    this.digest = digest;
    this.#plant = plant;
  }

  async open(options?: LedgerOptions): Promise<StoredLedger> {
    const ledger = await this.#openLedger(this.#place, options);
    this.#ledgers.push(ledger);
    return ledger;
  }

  /** Several handles of the same ledger, as several replicas have them. */
  openSeveral(count: number, options?: LedgerOptions): Promise<StoredLedger[]> {
    return Promise.all(Array.from({ length: count }, () => this.open(options)));
  }

  async plant(id: string, bytes: Uint8Array): Promise<void> {
    await this.#plant?.(this.#place, this.digest.key(id), bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ledgers.map((ledger) => ledger.close()));
  }
}

/** Binds a rule to a store. */
export function bindRule(
  rule: Rule,
  openLedger: OpenLedger,
  place: string,
  { plant }: ConformanceFeatures,
): ConformanceCase {
  return {
    name: rule.name,
    run: async () => {
      await using scene = new Scene(openLedger, place, await loadDigest(), plant);
      await rule.run(scene);
    },
  };
}

/** @throws ConformanceError unless both are deeply equal, members that are `undefined` included */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new ConformanceError(`${what}: expected ${inspect(expected)}, not ${inspect(actual)}`);
}

/** @throws ConformanceError unless the call is refused with this code */
export async function expectCode(call: () => Promise<unknown>, code: string, what: string): Promise<void> {
  await expectRefusal(call, (error) => error instanceof Error && "code" in error && error.code === code, {
    expected: code,
    what,
  });
}

/** @throws ConformanceError unless the call rejects with an error that fits */
export async function expectRefusal(
  call: () => Promise<unknown>,
  fits: (error: unknown) => boolean,
  { expected, what }: { expected: string; what: string },
): Promise<void> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (cause) {
    if (fits(cause)) return;
    throw new ConformanceError(`${what}: expected ${expected}, not ${inspect(cause)}`, { cause });
  }
  throw new ConformanceError(`${what}: expected ${expected}, not the answer ${inspect(answer)}`);
}

/** An owner's choice that counts how often it was asked. */
export function chooser(backend: string): { choose: () => Promise<string>; readonly callCount: number } {
  let callCount = 0;
  return {
    choose: async () => {
      callCount++;
      return backend;
    },
    get callCount() {
      return callCount;
    },
  };
}
