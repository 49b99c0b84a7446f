import type { ExecutionAudit, ExecutionRecord } from "@cellkit/execution";

/** What a dispatcher keeps of an execution beyond its own death (execution API, section 10.3). */
export interface JournalEntry {
  readonly requestHash: string;
  readonly record: ExecutionRecord;
  readonly audit: ExecutionAudit;
}

/** Where entries are kept, and how often each execution was started. */
export interface Journal {
  /** Every entry there is. */
  load(): Promise<JournalEntry[]>;
  /** Keeps an entry for an id that has none. Rejects when that cannot be done durably. */
  claim(entry: JournalEntry): Promise<void>;
  /** Replaces the entry of its id. Rejects when that cannot be done durably. */
  update(entry: JournalEntry): Promise<void>;
  /** Forgets all entries, but not what ran. */
  lose(): Promise<void>;
  /** Notes that an execution starts. Synchronous, so that no start can go unnoticed. */
  started(id: string): void;
  /** How often each id was started, over all lives of the dispatcher. */
  readonly runs: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/** A journal that lives as long as the test does, and outlives every death within it. */
export class MemoryJournal implements Journal {
  readonly #entries = new Map<string, JournalEntry>();
  readonly runs = new Map<string, number>();

  async load(): Promise<JournalEntry[]> {
    return [...this.#entries.values()];
  }

  async claim(entry: JournalEntry): Promise<void> {
    this.#entries.set(entry.record.requestId, entry);
  }

  async update(entry: JournalEntry): Promise<void> {
    this.#entries.set(entry.record.requestId, entry);
  }

  async lose(): Promise<void> {
    this.#entries.clear();
  }

  started(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
  }

  async close(): Promise<void> {}
}
