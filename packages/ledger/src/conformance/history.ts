/** Histories: what callers asked of a ledger, when, and what they were told. JSON, so that any checker can judge them. */
import { type Digest, loadDigest } from "../digest.ts";
import type {
  Claim,
  LedgerCallOptions,
  LedgerEntry,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "../ledger.ts";

/** What a call was told. `unchanged`: it failed and surely did nothing. `maybe`: it failed and may have been done, or may yet be. */
export type HistoryAnswer =
  | { kind: "new" | "existing" | "found" | "added" | "present"; backend: string; bodyHash: string }
  | { kind: "conflict" | "full" | "absent" | "retired" | "kept" | "swept" | "unchanged" | "maybe" };

/** One call of one caller. */
export interface HistoryOperation {
  client: string;
  kind: "claim" | "lookup" | "restore" | "retire" | "sweep";
  /** The lowercase hex BLAKE3-256 of the id; a sweep has none. */
  key?: string;
  /** Of the body that was claimed, or of the binding that was restored. */
  bodyHash?: string;
  /** The owner that was chosen or restored; a claim that chose none has none. */
  backend?: string;
  /** Microseconds on a clock that all callers of the history share. */
  calledUs: number;
  /** Null: nobody was told anything (the caller died, for example). */
  returnedUs: number | null;
  answer: HistoryAnswer | null;
}

/** A ledger that writes down its calls, and what it has written. */
export interface RecordedLedger {
  ledger: StoredLedger;
  /** In the order of their beginning; an entry is there while its call runs. */
  operations: readonly HistoryOperation[];
}

/** After these nothing was written, as the interface says. */
const UNCHANGED: readonly unknown[] = [
  "CELLKIT_LEDGER_OPTION",
  "CELLKIT_LEDGER_CLOSED",
  "CELLKIT_LEDGER_OWNER",
  "CELLKIT_LEDGER_BUSY",
  "CELLKIT_LEDGER_CORRUPT",
  "CELLKIT_LEDGER_NOT_RETIRABLE",
];

/**
 * Wraps a ledger so that its claims, lookups, restores, retirements and sweeps are recorded. Histories of several handles and processes
 * are put together by concatenation.
 * @param options `client` tells callers apart, default `0`. `clockUs` answers microseconds; the default is the machine's monotonic
 *   clock, which all processes of a Linux machine share
 */
export function recordHistory(
  ledger: StoredLedger,
  options: { client?: string | undefined; clockUs?: (() => number) | undefined } = {},
): RecordedLedger {
  const { client = "0", clockUs = monotonicUs } = options;
  const operations: HistoryOperation[] = [];
  const recorder: Recorder = async (call, perform) => {
    const operation: HistoryOperation = {
      client,
      ...call,
      calledUs: clockUs(),
      returnedUs: null,
      answer: null,
    };
    operations.push(operation);
    try {
      const { value, answer } = await perform(operation);
      operation.answer = answer;
      return value;
    } catch (error) {
      operation.answer = { kind: isUnchanged(error, operation.kind) ? "unchanged" : "maybe" };
      throw error;
    } finally {
      operation.returnedUs = clockUs();
    }
  };
  return { ledger: new RecordingLedger(ledger, recorder), operations };
}

type Recorder = <T>(
  call: Pick<HistoryOperation, "kind" | "key" | "bodyHash" | "backend">,
  perform: (operation: HistoryOperation) => Promise<{ value: T; answer: HistoryAnswer }>,
) => Promise<T>;

function monotonicUs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e6 + nanoseconds / 1e3;
}

/** Only what is said of a claim tells that nothing was recorded; other calls that the store failed may have been done. */
function isUnchanged(error: unknown, kind: HistoryOperation["kind"]): boolean {
  const { code, recorded } = error as { code?: unknown; recorded?: unknown };
  if (kind === "sweep") return code === "CELLKIT_LEDGER_NOT_RETIRABLE";
  return UNCHANGED.includes(code) || (kind === "claim" && recorded === "no");
}

class RecordingLedger implements StoredLedger {
  readonly #ledger: StoredLedger;
  readonly #record: Recorder;

  constructor(ledger: StoredLedger, record: Recorder) {
    this.#ledger = ledger;
    this.#record = record;
  }

  get url(): string {
    return this.#ledger.url;
  }

  get name(): string {
    return this.#ledger.name;
  }

  get ledgerId(): string {
    return this.#ledger.ledgerId;
  }

  get capacity(): number | undefined {
    return this.#ledger.capacity;
  }

  async claim(
    id: string,
    body: Uint8Array | string,
    chooseOwner: () => Promise<string>,
    options?: LedgerCallOptions,
  ): Promise<Claim> {
    const digest: Digest = await loadDigest();
    const call = { kind: "claim", key: digest.key(id), bodyHash: digest.bodyHash(body) } as const;
    return this.#record(call, async (operation) => {
      const choose = async () => {
        const backend = await chooseOwner();
        operation.backend = backend;
        return backend;
      };
      const value = await this.#ledger.claim(id, body, choose, options);
      return {
        value,
        answer: "owner" in value ? { kind: value.kind, ...value.owner } : { kind: value.kind },
      };
    });
  }

  async lookup(id: string, options?: LedgerCallOptions): Promise<Owner | undefined> {
    const { key } = await loadDigest();
    return this.#record({ kind: "lookup", key: key(id) }, async () => {
      const value = await this.#ledger.lookup(id, options);
      return { value, answer: value === undefined ? { kind: "absent" } : { kind: "found", ...value } };
    });
  }

  async retire(id: string, options: QuarantineOptions): Promise<boolean> {
    const { key } = await loadDigest();
    return this.#record({ kind: "retire", key: key(id) }, async () => {
      const value = await this.#ledger.retire(id, options);
      return { value, answer: { kind: value ? "retired" : "kept" } };
    });
  }

  sweep(options: QuarantineOptions): Promise<number> {
    return this.#record({ kind: "sweep" }, async () => ({
      value: await this.#ledger.sweep(options),
      answer: { kind: "swept" },
    }));
  }

  restore(
    key: string,
    owner: Owner,
    options?: LedgerCallOptions,
  ): Promise<"added" | "present" | "conflict" | "full"> {
    return this.#record({ kind: "restore", key, ...owner }, async () => {
      const value = await this.#ledger.restore(key, owner, options);
      const isBound = value === "added" || value === "present";
      return { value, answer: isBound ? { kind: value, ...owner } : { kind: value } };
    });
  }

  count(options?: LedgerCallOptions): Promise<number> {
    return this.#ledger.count(options);
  }

  entries(options?: LedgerCallOptions): AsyncIterable<LedgerEntry> {
    return this.#ledger.entries(options);
  }

  entry(key: string, options?: LedgerCallOptions): Promise<LedgerEntry | undefined> {
    return this.#ledger.entry(key, options);
  }

  close(): Promise<void> {
    return this.#ledger.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
