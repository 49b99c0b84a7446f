/** Where one case plays: a fresh place, and ledgers that are closed at its end. */
import { type Digest, loadDigest } from "../digest.ts";
import { ConformanceError } from "../errors.ts";
import type { LedgerOptions, StoredLedger } from "../ledger.ts";
import type { ConformanceFeature, ConformanceFeatures, OpenLedger } from "./conformance-case.ts";
import { missingMethods, RunningCalls, watchLedger } from "./watched-ledger.ts";

/** One rule, before it knows the store. */
export interface Rule {
  name: string;
  needs?: readonly (ConformanceFeature | "plant")[];
  run(scene: Scene): Promise<void>;
}

export class Scene {
  /** BLAKE3, for keys and bodies. */
  readonly digest: Digest;
  readonly running = new RunningCalls();
  readonly #openLedger: OpenLedger;
  readonly #place: string;
  readonly #features: ConformanceFeatures;
  /** What was opened, and what the rules see of it. */
  readonly #ledgers = new Map<StoredLedger, StoredLedger>();

  private constructor(openLedger: OpenLedger, place: string, features: ConformanceFeatures, digest: Digest) {
    this.#openLedger = openLedger;
    this.#place = place;
    this.#features = features;
    this.digest = digest;
  }

  static async begin(openLedger: OpenLedger, place: string, features: ConformanceFeatures): Promise<Scene> {
    return new Scene(openLedger, place, features, await loadDigest());
  }

  /** Whether ids of this store can be retired. */
  get canRetire(): boolean {
    return this.#features.lacks?.retiring === undefined;
  }

  /** @throws ConformanceError if the same handle was answered before: nothing that is seen through two of them would be shown */
  async open(options?: LedgerOptions): Promise<StoredLedger> {
    const ledger = await this.running.watch("open", this.#openLedger(this.#place, options));
    const watched = watchLedger(ledger, this.running);
    if (this.#ledgers.has(ledger))
      throw new ConformanceError("opening twice: expected two handles of the ledger, not the same one again");
    this.#ledgers.set(ledger, watched);
    return watched;
  }

  /** Several handles of the same ledger, as several replicas have them. */
  openSeveral(count: number, options?: LedgerOptions): Promise<StoredLedger[]> {
    return Promise.all(Array.from({ length: count }, () => this.open(options)));
  }

  /** What the ledgers opened so far do not have of what a ledger has. */
  missingMethods(): string[] {
    return [...new Set([...this.#ledgers.keys()].flatMap(missingMethods))];
  }

  async plant(id: string, bytes: Uint8Array): Promise<void> {
    const planting = this.#features.plant?.(this.#place, this.digest.key(id), bytes);
    if (planting !== undefined) await this.running.watch("plant", planting);
  }

  /** Closes every handle, also when one of them cannot be closed. */
  async end(): Promise<void> {
    const closed = await Promise.allSettled(
      [...this.#ledgers.values()].map(async (ledger) => ledger.close()),
    );
    for (const close of closed) if (close.status === "rejected") throw close.reason;
  }
}
