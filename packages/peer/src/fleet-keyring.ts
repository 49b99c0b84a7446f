/** The fleet's keys in a running process: read at the start, and again every few seconds, so that a rotation needs no restart. */
import { setTimeout as sleep } from "node:timers/promises";
import type { FleetKey } from "./core/fleet-key.ts";
import { PeerOptionError } from "./errors.ts";
import { createOrLoadFleetKey, type FleetKeys, requireFleetKeys, shownKeys } from "./fleet-keys.ts";
import type { FleetCallOptions, FleetStore } from "./fleet-store.ts";
import type { ShownKeys } from "./node-record.ts";

/** Options of {@link openFleetKeyring}. */
export interface FleetKeyringOptions extends FleetCallOptions {
  /** Make the key when the fleet has none: nodes do, tools do not. @default false */
  create?: boolean;
  /** How often the keys are read again, 100 to 30,000. A rotation allows for 30 s. @default 5_000 */
  refreshMs?: number;
  /** Hears that the keys changed; a node then writes its record anew. @default nobody */
  onChange?: (shown: ShownKeys) => void;
  /** Hears that the keys could not be read again; those that were read stay. @default nobody */
  onFailure?: (error: unknown) => void;
}

/**
 * Reads the keys and keeps them fresh until `close()`.
 * @throws what {@link createOrLoadFleetKey} or {@link requireFleetKeys} throws, PeerOptionError
 */
export async function openFleetKeyring(
  store: FleetStore,
  options: FleetKeyringOptions = {},
): Promise<FleetKeyring> {
  const { create = false, refreshMs = 5_000, onChange = () => {}, onFailure = () => {}, signal } = options;
  if (!Number.isInteger(refreshMs) || refreshMs < 100 || refreshMs > 30_000)
    throw new PeerOptionError("refreshMs", "must be a whole number from 100 to 30000");
  const keys = create
    ? await createOrLoadFleetKey(store, { signal })
    : await requireFleetKeys(store, { signal });
  return new FleetKeyring(store, keys, { refreshMs, onChange, onFailure });
}

/** Keys that stay fresh; made by {@link openFleetKeyring}. */
export class FleetKeyring implements AsyncDisposable {
  readonly #store: FleetStore;
  readonly #options: Required<Pick<FleetKeyringOptions, "refreshMs" | "onChange" | "onFailure">>;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #keys: readonly [FleetKey, ...FleetKey[]];
  #shown: ShownKeys;

  /** @internal use {@link openFleetKeyring} */
  constructor(
    store: FleetStore,
    { keys }: FleetKeys,
    options: Required<Pick<FleetKeyringOptions, "refreshMs" | "onChange" | "onFailure">>,
  ) {
    this.#store = store;
    this.#options = options;
    this.#keys = keys;
    this.#shown = shownKeys(keys);
    this.#running = this.#run();
  }

  /** The first signs, all are accepted. Ask each time: hand `() => ring.keys` to a RequestVerifier. */
  get keys(): readonly [FleetKey, ...FleetKey[]] {
    return this.#keys;
  }

  /** The keys as the node's record shows them. */
  get shown(): ShownKeys {
    return this.#shown;
  }

  /**
   * Reads the keys now. A node does this once its record is written: a rotation that looked before then did not see it.
   * @throws what {@link requireFleetKeys} throws; the keys stay as they were
   */
  async refresh(options: FleetCallOptions = {}): Promise<void> {
    const { keys } = await requireFleetKeys(this.#store, options);
    const shown = shownKeys(keys);
    if (JSON.stringify(shown) === JSON.stringify(this.#shown)) return;
    this.#keys = keys;
    this.#shown = shown;
    this.#options.onChange(shown);
  }

  /** Ends the reading; the keys stay. Idempotent. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await sleep(this.#options.refreshMs, undefined, { signal, ref: false });
        await this.refresh({ signal });
      } catch (error) {
        if (!signal.aborted) this.#options.onFailure(error);
      }
    }
  }
}
