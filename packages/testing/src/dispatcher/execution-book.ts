// The executions of one dispatcher: what it answers about them, and how they go on. Knows no connection.
import { setImmediate as nextTurn } from "node:timers/promises";
import { type ExecutionRecord, type ExecutionRequest, isTerminal } from "@cellkit/execution";
import { workerUnavailable } from "../core/fault.ts";
import { checkedEnd, finalRecord, firstAudit, nextAudit, type RunEnd } from "../core/run-end.ts";
import { type Answer, refusal } from "../core/wire-answer.ts";
import { readRequest, refusedAdmission, reservationOf } from "./admission.ts";
import type { Identity } from "./hash.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import type { Reserved, ResolvedNode } from "./node-figures.ts";
import type { RunFn } from "./running-execution.ts";

const interrupted = refusal(
  503,
  "interrupted execution requires operator reconciliation; teardown is unproven; do not replay",
);
const unknown = refusal(404, "unknown execution");

/** Where an execution is; `active` has not ended, as far as it is known here. */
export type EntryState = "active" | "interrupted" | "undurable" | "done";

interface Entry {
  kept: JournalEntry;
  /** Settled when the journal has it: true when it does. */
  readonly claimed: Promise<boolean>;
  /** `active` holds capacity; `interrupted` was active when an earlier life ended; `undurable` ended, but the journal does not know. */
  state: EntryState;
  readonly reserved: Reserved;
  readonly abort: AbortController;
  /** Settled when the last change of its record is in the journal. */
  changed: Promise<unknown>;
}

export interface BookParts {
  readonly journal: Journal;
  readonly identity: Identity;
  readonly run: RunFn;
  readonly node: () => ResolvedNode;
}

const nothing: Reserved = { cells: 0, memoryBytes: 0n, egressSlots: 0 };

export class ExecutionBook {
  draining = false;
  readonly #parts: BookParts;
  readonly #entries = new Map<string, Entry>();
  readonly #active = new Set<Pick<Entry, "reserved">>();
  #isDead = false;

  private constructor(parts: BookParts) {
    this.#parts = parts;
  }

  /** A book with what the journal has; whatever was active is interrupted. */
  static async open(parts: BookParts): Promise<ExecutionBook> {
    const book = new ExecutionBook(parts);
    for (const kept of await parts.journal.load()) {
      const state = isTerminal(kept.record) ? "done" : "interrupted";
      const claimed = Promise.resolve(true);
      const entry = {
        kept,
        claimed,
        state,
        reserved: nothing,
        abort: new AbortController(),
        changed: claimed,
      };
      book.#entries.set(kept.record.requestId, entry as Entry);
    }
    return book;
  }

  /** What active executions and prewarms hold. */
  get reserved(): Reserved {
    let { cells, memoryBytes, egressSlots } = nothing;
    for (const { reserved } of this.#active) {
      cells += reserved.cells;
      memoryBytes += reserved.memoryBytes;
      egressSlots += reserved.egressSlots;
    }
    return { cells, memoryBytes, egressSlots };
  }

  /** Holds capacity for something that is no execution. @returns what ends that */
  reserve(reserved: Reserved): () => void {
    const held = { reserved };
    this.#active.add(held);
    return () => void this.#active.delete(held);
  }

  /** Where an execution is; undefined when there is none. */
  stateOf(id: string): EntryState | undefined {
    return this.#entries.get(id)?.state;
  }

  /** @param hasWorker false: it is admitted, and then nobody is there to run it */
  async submit(body: Uint8Array, hasWorker = true): Promise<Answer> {
    const read = readRequest(body, this.#parts.node());
    if (read.kind === "refused") return read.answer;
    const { request } = read;
    const requestHash = this.#parts.identity(body);
    const known = this.#entries.get(request.id);
    if (known !== undefined) return this.#repeat(known, requestHash, body);
    const refused = refusedAdmission(request, this.#parts.node(), this.reserved, this.draining);
    return refused ?? this.#accept(request, requestHash, body, hasWorker);
  }

  async read(id: string): Promise<Answer> {
    const entry = await this.#known(id);
    return entry === undefined ? unknown : answerOf(entry, 200);
  }

  async audit(id: string): Promise<Answer> {
    const entry = await this.#known(id);
    return entry === undefined ? unknown : { status: 200, body: entry.kept.audit };
  }

  async cancel(id: string): Promise<Answer> {
    const entry = await this.#known(id);
    if (entry === undefined) return unknown;
    if (entry.state !== "active") return answerOf(entry, 200);
    if (!entry.abort.signal.aborted) {
      const reason = "cancellation requested; cleanup pending";
      await this.#change(entry, (record) => ({ ...record, phase: "Cancelling", reason }));
      entry.abort.abort();
    }
    return answerOf(entry, isTerminal(entry.kept.record) ? 200 : 202);
  }

  /**
   * Ends this life: nothing that still runs changes anything from here on. Ended when the journal has what was being written to
   * it, so that it comes into no later life.
   */
  async kill(): Promise<void> {
    this.#isDead = true;
    const active = [...this.#entries.values()].filter(({ state }) => state === "active");
    for (const { abort } of active) abort.abort();
    await Promise.all(active.map(({ changed }) => changed));
  }

  async #repeat(known: Entry, requestHash: string, body: Uint8Array): Promise<Answer> {
    if (known.kept.requestHash !== requestHash) {
      return refusal(409, "execution id already bound to different request bytes");
    }
    // A claim that failed left nothing behind, so this call is the first.
    if (!(await known.claimed)) return this.submit(body);
    return answerOf(known, known.state === "active" ? 202 : 200);
  }

  async #accept(
    request: ExecutionRequest,
    requestHash: string,
    body: Uint8Array,
    hasWorker: boolean,
  ): Promise<Answer> {
    const { journal, node } = this.#parts;
    const record = { requestId: request.id, phase: "Admitting" };
    const kept = { requestHash, record, audit: firstAudit(request, node().name, now()) };
    const claimed = journal.claim(kept).then(
      () => true,
      () => false,
    );
    const reserved = reservationOf(request);
    const abort = new AbortController();
    const entry: Entry = { kept, claimed, state: "active", reserved, abort, changed: claimed };
    this.#entries.set(request.id, entry);
    this.#active.add(entry);
    if (!(await claimed)) {
      this.#entries.delete(request.id);
      this.#active.delete(entry);
      return refusal(503, "durable admission unavailable; retry same id");
    }
    if (this.#isDead) return interrupted;
    if (!hasWorker) {
      await this.#end(entry, () => ({ ...record, phase: "Failed", reason: "no worker could start" }));
      return workerUnavailable;
    }
    journal.started(request.id);
    void this.#run(entry, request, body);
    return { status: 202, body: record };
  }

  async #run(entry: Entry, request: ExecutionRequest, body: Uint8Array): Promise<void> {
    const startedAt = now();
    const phase = async (name: string) => {
      await this.#change(entry, (record) => ({ ...record, phase: name }));
    };
    const execution = { id: request.id, request, body, signal: entry.abort.signal, phase };
    // The call that submitted it is answered as `Admitting` before anything else can be seen.
    await nextTurn();
    const end = await ended(this.#parts.run, execution);
    const facts = {
      request,
      node: this.#parts.node().name,
      cellId: this.#parts
        .identity(`${startedAt} ${request.id}`)
        .slice("blake3:".length, "blake3:".length + 12),
      startedAt,
      completedAt: now(),
      identity: this.#parts.identity,
    };
    await this.#end(entry, () => finalRecord(end, facts));
  }

  async #end(entry: Entry, final: () => ExecutionRecord): Promise<void> {
    const isDurable = await this.#change(entry, final);
    if (this.#isDead) return;
    entry.state = isDurable ? "done" : "undurable";
    this.#active.delete(entry);
  }

  /**
   * Puts a record into the journal, then into answers, after the change before it; false when the journal failed: what is not final is
   * shown all the same. A final record and a dead dispatcher change no more.
   */
  #change(entry: Entry, change: (record: ExecutionRecord) => ExecutionRecord): Promise<boolean> {
    const changed = entry.changed.then(async () => {
      if (this.#isDead || isTerminal(entry.kept.record)) return false;
      const record = change(entry.kept.record);
      const kept = { ...entry.kept, record, audit: nextAudit(entry.kept.audit, record, now()) };
      const isDurable = await this.#parts.journal.update(kept).then(
        () => true,
        () => false,
      );
      if (isDurable || !isTerminal(record)) entry.kept = kept;
      return isDurable;
    });
    entry.changed = changed;
    return changed;
  }

  async #known(id: string): Promise<Entry | undefined> {
    const entry = this.#entries.get(id);
    return entry !== undefined && (await entry.claimed) ? entry : undefined;
  }
}

function answerOf({ state, kept }: Entry, status: number): Answer {
  if (state === "interrupted") return interrupted;
  if (state === "undurable") return refusal(503, "terminal record not durable; do not replay");
  return { status, body: kept.record };
}

async function ended(run: RunFn, execution: Parameters<RunFn>[0]): Promise<RunEnd> {
  try {
    return checkedEnd("what run returned", await run(execution));
  } catch (error) {
    const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: "failed", reason: `the run of the test threw ${what}` };
  }
}

function now(): string {
  return new Date().toISOString();
}
