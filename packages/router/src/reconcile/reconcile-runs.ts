// A report of runs against their owners: `cellkit router reconcile`. It reads the ledger and asks dispatchers by GET, and does nothing
// else: no claim, no cancel, no submission.

import { isExecutionId } from "@cellkit/execution/contract";
import { type Digest, LedgerError, type LedgerReader, loadDigest } from "@cellkit/ledger";
import type { Dispatchers } from "../backend/dispatchers.ts";
import { askBackend, readingDispatchers } from "./ask-backend.ts";
import { judgeRun } from "./judge-run.ts";
import type { ReconciledRun, ReconcileSummary, RunState } from "./reconciled-run.ts";

/** What runs are reconciled against. */
export interface ReconcilePlane {
  readonly ledger: LedgerReader;
  /** All dispatchers. */
  readonly origins: readonly string[];
  /** The backend token. */
  readonly token: Uint8Array;
}

/** How it is done. */
export interface ReconcileOptions {
  /** Ask all dispatchers for each id, and not only its owner: finds what ran twice, or beside its owner. @default false */
  readonly everywhere?: boolean;
  /** Hears of each run, in the order of the ids. */
  readonly onRun?: (run: ReconciledRun) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Runs that are looked at together. */
const batchCount = 16;

/**
 * Finds out where runs are. Ids that no owner is recorded for are asked of all dispatchers.
 * @param ids one that comes a second time is passed over
 * @throws LedgerError (CELLKIT_LEDGER_…) when the ledger as a whole cannot be read; the signal's reason
 */
export async function reconcileRuns(
  ids: Iterable<string> | AsyncIterable<string>,
  plane: ReconcilePlane,
  options: ReconcileOptions = {},
): Promise<ReconcileSummary> {
  const { signal = new AbortController().signal, onRun } = options;
  const digest = await loadDigest();
  const keys = new Set<string>();
  const states: Partial<Record<RunState, number>> = {};
  const reader = new RunReader(plane, { digest, everywhere: options.everywhere ?? false, signal });
  let runCount = 0;
  const look = async (batch: readonly string[]): Promise<void> => {
    for (const run of await Promise.all(batch.map((id) => reader.read(id)))) {
      signal.throwIfAborted();
      runCount += 1;
      states[run.state] = (states[run.state] ?? 0) + 1;
      onRun?.(run);
    }
  };
  let batch: string[] = [];
  for await (const id of ids) {
    const key = digest.key(id);
    if (keys.has(key)) continue;
    keys.add(key);
    batch.push(id);
    if (batch.length < batchCount) continue;
    await look(batch);
    batch = [];
  }
  await look(batch);
  return { runCount, states, ...(await recordsBeside(plane.ledger, keys, signal)) };
}

async function recordsBeside(
  ledger: LedgerReader,
  keys: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Pick<ReconcileSummary, "otherRecords" | "unreadableCount">> {
  const otherRecords = new Map<string, number>();
  let unreadableCount = 0;
  for await (const { key, owner, problem } of ledger.entries({ signal })) {
    if (owner === undefined) unreadableCount += problem === undefined ? 0 : 1;
    else if (!keys.has(key)) otherRecords.set(owner.backend, (otherRecords.get(owner.backend) ?? 0) + 1);
  }
  return { otherRecords, unreadableCount };
}

class RunReader {
  readonly #digest: Digest;
  readonly #ledger: LedgerReader;
  readonly #origins: readonly string[];
  readonly #token: Uint8Array;
  readonly #everywhere: boolean;
  readonly #signal: AbortSignal;
  readonly #dispatchers: Dispatchers;

  constructor(
    { ledger, origins, token }: ReconcilePlane,
    { digest, everywhere, signal }: { digest: Digest; everywhere: boolean; signal: AbortSignal },
  ) {
    this.#digest = digest;
    this.#ledger = ledger;
    this.#origins = origins;
    this.#token = token;
    this.#everywhere = everywhere;
    this.#signal = signal;
    this.#dispatchers = readingDispatchers(signal);
  }

  async read(id: string): Promise<ReconciledRun> {
    const told = (state: RunState, detail: string): ReconciledRun => ({
      id,
      state,
      owner: undefined,
      phase: undefined,
      detail,
    });
    if (!isExecutionId(id)) return told("invalid", "no router takes such an id");
    let owner: string | undefined;
    try {
      const entry = await this.#ledger.entry(this.#digest.key(id), { signal: this.#signal });
      if (entry !== undefined && entry.owner === undefined)
        return told("unreadable", entry.problem ?? "the ledger's record cannot be read");
      owner = entry?.owner?.backend;
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      return told("unknown", error.message);
    }
    const isListed = owner !== undefined && this.#origins.includes(owner);
    const asked = this.#everywhere || owner === undefined ? this.#origins : isListed ? [owner] : [];
    const answers = new Map(
      await Promise.all(
        asked.map(
          async (origin) =>
            [origin, await askBackend(this.#dispatchers, { origin, id, token: this.#token })] as const,
        ),
      ),
    );
    const { state, phase, detail } = judgeRun({ owner, isListed, answers });
    return { id, state, owner, phase, detail };
  }
}
