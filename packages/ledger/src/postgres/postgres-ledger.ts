/** Claims as rows of a table whose primary key decides races; see table.ts for the layout and record-writer.ts for the one hard part. */
import { randomUUID } from "node:crypto";
import { answerExisting, callChooseOwner, checkBody, checkId, checkOwner } from "../core/claim-check.ts";
import { checkKey, checkQuarantine } from "../core/ledger-options.ts";
import type { Digest } from "../digest.ts";
import {
  CorruptRecordError,
  LedgerClosedError,
  LedgerUnavailableError,
  NotRetirableError,
  OwnerChoiceError,
} from "../errors.ts";
import type {
  Claim,
  LedgerCallOptions,
  LedgerEntry,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "../ledger.ts";
import type { Ask, CallState, Connections } from "./connections.ts";
import { Looks } from "./looks.ts";
import { insertRecord, insertRecordBelow, type Written } from "./record-writer.ts";
import { checkMarker, type LedgerStatements, PAGE_ROWS, type Row, readRows, readTotal } from "./table.ts";

/** How often a claim starts over when each record it loses to is retired before it can be read. */
const MAX_LOST_RACES = 10;

/** What a ledger is made of; all of it is checked by {@link openPostgresLedger}. */
export interface PostgresLedgerParts {
  url: string;
  name: string;
  ledgerId: string;
  capacity: number | undefined;
  retirable: boolean;
  /** The caller's clock; undefined: the server's, which also gives records their times. */
  now: (() => number) | undefined;
  /** For whatever changes records or reads many. */
  connections: Connections;
  /** For looks, which must not queue behind writes; may be the same. */
  lookConnections: Connections;
  statements: LedgerStatements;
  digest: Digest;
}

export class PostgresLedger implements StoredLedger {
  readonly url: string;
  readonly name: string;
  readonly ledgerId: string;
  readonly capacity: number | undefined;
  readonly #parts: PostgresLedgerParts;
  readonly #looks: Looks;
  readonly #running = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(parts: PostgresLedgerParts) {
    this.url = parts.url;
    this.name = parts.name;
    this.ledgerId = parts.ledgerId;
    this.capacity = parts.capacity;
    this.#parts = parts;
    this.#looks = new Looks(parts.lookConnections, parts.statements);
  }

  /** One round trip looks, one writes; an id that is known costs the look alone. */
  async claim(
    id: string,
    body: Uint8Array | string,
    chooseOwner: () => Promise<string>,
    { signal }: LedgerCallOptions = {},
  ): Promise<Claim> {
    this.#begin(signal);
    checkId(id);
    checkBody(body);
    const { digest } = this.#parts;
    const key = digest.key(id);
    const bodyHash = digest.bodyHash(body);
    return this.#track(signal, async () => {
      const known = await this.#answerKnown(key, bodyHash);
      if (known !== undefined) return known;
      if (await this.#isFull(signal)) return { kind: "full" };
      const backend = await callChooseOwner(chooseOwner, signal);
      if (backend.includes("\0"))
        throw new OwnerChoiceError("the owner chosen for a new id has a NUL in it; nothing was recorded");
      return this.#record(key, { backend, bodyHash }, signal);
    });
  }

  async lookup(id: string, { signal }: LedgerCallOptions = {}): Promise<Owner | undefined> {
    this.#begin(signal);
    checkId(id);
    const key = this.#parts.digest.key(id);
    return this.#track(signal, async () => this.#ownerOf(await this.#looks.find(key)));
  }

  async retire(id: string, { quarantineMs, signal }: QuarantineOptions): Promise<boolean> {
    this.#beginRetiring(quarantineMs, signal);
    checkId(id);
    const key = this.#parts.digest.key(id);
    return this.#track(signal, async () => {
      const row = await this.#looks.find(key);
      if (row === undefined) return false;
      this.#ownerOf(row);
      if (this.#isAged(row, quarantineMs)) return (await this.#remove([row], signal)) > 0;
      await this.#run((ask) => ask(this.#parts.statements.mark(key, row.nonce)), signal);
      return false;
    });
  }

  async sweep({ quarantineMs, signal }: QuarantineOptions): Promise<number> {
    this.#beginRetiring(quarantineMs, signal);
    return this.#track(signal, async () => {
      let count = 0;
      for await (const page of this.#pages("pageOfMarked", signal)) {
        const aged = page.filter((row) => row.entry.owner && this.#isAged(row, quarantineMs));
        if (aged.length > 0) count += await this.#remove(aged, signal);
      }
      return count;
    });
  }

  async count({ signal }: LedgerCallOptions = {}): Promise<number> {
    this.#begin(signal);
    return this.#track(signal, () =>
      this.#run(async (ask) => {
        const total = readTotal(await ask(this.#parts.statements.count()));
        await this.#checkMarker(ask);
        return total;
      }, signal),
    );
  }

  async *entries({ signal }: LedgerCallOptions = {}): AsyncGenerator<LedgerEntry> {
    this.#begin(signal);
    for await (const page of this.#pages("page", signal)) {
      for (const { entry } of page) {
        yield entry;
        this.#begin(signal);
      }
    }
  }

  async entry(key: string, { signal }: LedgerCallOptions = {}): Promise<LedgerEntry | undefined> {
    this.#begin(signal);
    checkKey(key);
    return this.#track(signal, async () => (await this.#looks.find(key))?.entry);
  }

  async restore(
    key: string,
    owner: Owner,
    { signal }: LedgerCallOptions = {},
  ): Promise<"added" | "present" | "conflict" | "full"> {
    this.#begin(signal);
    checkKey(key);
    checkOwner(owner);
    return this.#track(signal, async () => {
      for (;;) {
        const present = this.#ownerOf(await this.#looks.find(key));
        if (present !== undefined)
          return present.backend === owner.backend && present.bodyHash === owner.bodyHash
            ? "present"
            : "conflict";
        const written = await this.#write(key, owner, signal);
        if (written === "full") return "full";
        if (written === "written") return "added";
      }
    });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#running);
    const { connections, lookConnections } = this.#parts;
    await Promise.all([connections.close(), lookConnections.close()]);
  }

  #begin(signal: AbortSignal | undefined): void {
    if (this.#closed !== undefined) throw new LedgerClosedError(this.url);
    signal?.throwIfAborted();
  }

  #beginRetiring(quarantineMs: number, signal: AbortSignal | undefined): void {
    this.#begin(signal);
    if (!this.#parts.retirable) throw new NotRetirableError(this.url);
    checkQuarantine(quarantineMs);
  }

  /** Runs a call to its end, which {@link close} waits for; an aborted caller is let go at once. */
  async #track<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    const running = call();
    this.#running.add(running);
    const ended = running.finally(() => this.#running.delete(running));
    ended.catch(() => {});
    if (signal === undefined) return running;
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", onAbort);
    try {
      return await Promise.race([running, aborted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #checkMarker(ask: Ask): Promise<void> {
    checkMarker(await ask(this.#parts.statements.marker()), this.ledgerId);
  }

  #run<T>(work: (ask: Ask, state: CallState) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return this.#parts.connections.run(work, signal);
  }

  /** @throws CorruptRecordError */
  #ownerOf(row: Row | undefined): Owner | undefined {
    if (row === undefined) return undefined;
    const { key, owner, problem = "" } = row.entry;
    if (owner === undefined) throw new CorruptRecordError(this.url, key, problem);
    return owner;
  }

  async #answerKnown(key: string, bodyHash: string): Promise<Claim | undefined> {
    const owner = this.#ownerOf(await this.#looks.find(key));
    return owner === undefined ? undefined : answerExisting(owner, bodyHash);
  }

  async #isFull(signal: AbortSignal | undefined): Promise<boolean> {
    const { capacity } = this;
    if (capacity === undefined) return false;
    const counting = this.#parts.statements.countUpTo(capacity);
    return this.#run(async (ask) => readTotal(await ask(counting)) >= capacity, signal);
  }

  async #record(key: string, owner: Owner, signal: AbortSignal | undefined): Promise<Claim> {
    for (let lost = 0; lost < MAX_LOST_RACES; lost++) {
      const written = await this.#write(key, owner, signal);
      if (written === "written") return { kind: "new", owner };
      const known = await this.#answerKnown(key, owner.bodyHash);
      if (known !== undefined) return known;
      if (written === "full") return { kind: "full" };
    }
    throw new LedgerUnavailableError(
      this.url,
      "every record that took the id was gone when looked for",
      "no",
    );
  }

  #write(key: string, owner: Owner, signal: AbortSignal | undefined): Promise<Written> {
    const { capacity } = this;
    const { statements } = this.#parts;
    const record = { key, owner, nonce: randomUUID() };
    return this.#run(
      (ask, state) =>
        capacity === undefined
          ? insertRecord(statements, record, ask, state)
          : insertRecordBelow(capacity, statements, record, ask, state),
      signal,
    );
  }

  /** How many of these claims' records are gone by this call. */
  #remove(rows: readonly Row[], signal: AbortSignal | undefined): Promise<number> {
    return this.#run(async (ask, { unknown }) => {
      const { count } = await ask(this.#parts.statements.remove(rows));
      // After a lost answer the rows that are not found any more went with it; who else removed one cannot be told.
      return unknown ? rows.length : count;
    }, signal);
  }

  /** A record from the future (a clock that was set back) is young. */
  #isAged({ entry, serverMs }: Row, quarantineMs: number): boolean {
    return (this.#parts.now?.() ?? serverMs) - entry.modifiedMs >= quarantineMs;
  }

  async *#pages(kind: "page" | "pageOfMarked", signal: AbortSignal | undefined): AsyncGenerator<Row[]> {
    for (let after = ""; ; ) {
      const statement = this.#parts.statements[kind](after);
      const page = await this.#run(async (ask) => {
        const rows = readRows(await ask(statement));
        // A short page says that there is no more, which is true of this ledger only.
        if (rows.length < PAGE_ROWS) await this.#checkMarker(ask);
        return rows;
      }, signal);
      yield page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_ROWS) return;
      after = last.entry.key;
    }
  }
}
