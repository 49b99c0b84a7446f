// Leaves this replica's fingerprint beside the ledger every half minute, and looks whether the others' are the same. Nothing here can
// harm a request: what fails is told, and tried again.
import { createHash } from "node:crypto";
import type { Credentials } from "../core/credentials.ts";
import type { CredentialSource } from "../credential-files.ts";
import { CredentialError } from "../errors.ts";
import {
  type Fingerprint,
  formatFingerprint,
  type Mismatch,
  mismatchesOf,
  parseFingerprint,
} from "./fingerprint.ts";
import type { ReplicaNotes } from "./replica-notes.ts";
import { TokenGenerations } from "./token-generation.ts";

/** How a watch is made. */
export interface ReplicaWatchOptions {
  readonly replica: string;
  readonly ledgerId: string;
  readonly notes: ReplicaNotes;
  readonly credentials: CredentialSource;
  /** What the list of dispatchers is made of: origins in their order, the name of discovery, the mode. */
  readonly list: readonly string[];
  /** Hears of each difference that is new, and of each that is over. */
  readonly onMismatch: (mismatch: Mismatch, state: "begun" | "over") => void;
  /** Hears when looking begins to fail, with the store's error, and when it works again. */
  readonly onFailure: (error: unknown) => void;
  /** Time between two looks. @default 30_000 */
  readonly intervalMs?: number;
  /** How often the tokens are looked at; a look follows when they changed, so that nobody is alarmed by an old note. @default 2_000 */
  readonly tokenIntervalMs?: number;
  /** How long taking the note away may take; a store that cannot be reached is told of, and harms no stop. @default 2_000 */
  readonly closeMs?: number;
}

/** A note of this many intervals belongs to a replica that is gone. */
const lifeIntervals = 4;
/** A note of this many is removed by whoever sees it. */
const litterIntervals = 120;

/** The watch of one replica. */
export class ReplicaWatch {
  readonly #options: ReplicaWatchOptions;
  readonly #intervalMs: number;
  readonly #backends: string;
  readonly #generations: TokenGenerations;
  readonly #timers: readonly NodeJS.Timeout[];
  #credentials: Credentials | undefined;
  #mismatches: readonly Mismatch[] = [];
  #replicaCount = 0;
  #isFailing = false;
  #looking: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ReplicaWatchOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? 30_000;
    this.#backends = `sha256:${createHash("sha256").update(JSON.stringify(options.list)).digest("hex")}`;
    this.#generations = new TokenGenerations(options.ledgerId);
    this.#timers = [
      setInterval(() => void this.look(), this.#intervalMs).unref(),
      setInterval(() => {
        if (this.#load() !== this.#credentials) void this.look();
      }, options.tokenIntervalMs ?? 2_000).unref(),
    ];
  }

  /** In what others are different, as of the last look. */
  get mismatches(): readonly Mismatch[] {
    return this.#mismatches;
  }

  /** Replicas that live, this one included, as of the last look. */
  get replicaCount(): number {
    return this.#replicaCount;
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Writes and looks now. Never rejects. */
  look(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#looking ??= this.#look()
      .then(
        () => {
          this.#isFailing = false;
        },
        (error: unknown) => {
          if (!this.#isFailing) this.#options.onFailure(error);
          this.#isFailing = true;
        },
      )
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Takes the note away. Never rejects; idempotent. */
  close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { closeMs = 2_000 } = this.#options;
    const late = Promise.withResolvers<"late">();
    const timer = setTimeout(() => late.resolve("late"), closeMs);
    const end = await Promise.race([this.#takeAway(), late.promise]);
    clearTimeout(timer);
    // A note that stays is taken for a replica that is gone, soon enough.
    if (end !== "done" && !this.#isFailing) this.#options.onFailure(end === "late" ? undefined : end.error);
  }

  async #takeAway(): Promise<"done" | { readonly error: unknown }> {
    const { notes, replica } = this.#options;
    await this.#looking;
    try {
      await notes.remove(replica);
      return "done";
    } catch (error) {
      return { error };
    } finally {
      await notes.close().catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { replica, notes } = this.#options;
    const own = await this.#own();
    await notes.write(replica, formatFingerprint(own));
    const all = await notes.list();
    const nowMs = all.find((note) => note.replica === replica)?.writtenMs;
    // Without it there is no clock to tell the others' age by: what was found the last time stays.
    if (nowMs === undefined) return;
    const others: Fingerprint[] = [];
    for (const note of all) {
      if (note.replica === replica) continue;
      const ageIntervals = (nowMs - note.writtenMs) / this.#intervalMs;
      const fingerprint = parseFingerprint(note.text);
      if (ageIntervals < lifeIntervals && fingerprint !== undefined)
        others.push({ ...fingerprint, replica: note.replica });
      else if (ageIntervals >= litterIntervals) await notes.remove(note.replica);
    }
    await notes.sweep?.(nowMs - litterIntervals * this.#intervalMs);
    this.#replicaCount = others.length + 1;
    this.#tell(mismatchesOf(own, others));
  }

  async #own(): Promise<Fingerprint> {
    const { replica, ledgerId: ledger } = this.#options;
    const fingerprint = { version: 1, replica, backends: this.#backends, ledger } as const;
    const credentials = this.#load();
    this.#credentials = credentials;
    if (credentials === undefined) return fingerprint;
    const { client, backend, capability } = credentials;
    const tokens = {
      client: await this.#generations.of("client", client),
      backend: await this.#generations.of("backend", [backend]),
      capability: await this.#generations.of("capability", capability),
    };
    return { ...fingerprint, tokens };
  }

  /** undefined: they cannot be used, which requests tell of already. The same object as long as they are the same. */
  #load(): Credentials | undefined {
    try {
      return this.#options.credentials.load();
    } catch (error) {
      if (error instanceof CredentialError) return undefined;
      throw error;
    }
  }

  #tell(now: readonly Mismatch[]): void {
    const before = this.#mismatches;
    this.#mismatches = now;
    const isIn = (list: readonly Mismatch[], { replica, part }: Mismatch) =>
      list.some((each) => each.replica === replica && each.part === part);
    for (const each of now) if (!isIn(before, each)) this.#options.onMismatch(each, "begun");
    for (const each of before) if (!isIn(now, each)) this.#options.onMismatch(each, "over");
  }
}
