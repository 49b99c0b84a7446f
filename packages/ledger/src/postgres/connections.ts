/**
 * Connections to one PostgreSQL server, and the one loop that asks it. Work that is run here is repeated until the call's time is up
 * whenever its failure may pass by itself, so work that changes something must be safe to repeat when its outcome is unknown:
 * see `insertRecord`. Nothing depends on a connection's state (no prepared statements, settings or locks that outlive a
 * transaction), so that a pooler in transaction mode may stand between.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { LedgerError, LedgerUnavailableError } from "../errors.ts";
import { AttemptFailure, describeFailure, isPassing, isRefusal } from "./failure.ts";

/** Rows as the server wrote them, as text: parsers that a program sets in pg for its own queries have no say here. */
export interface Answer {
  rows: Readonly<Record<string, string | null>>[];
  /** How many rows were found or changed. */
  count: number;
  /** The command that was done; a COMMIT of a failed transaction answers ROLLBACK. */
  command: string;
}

/** One statement. A commit is one that makes a change last: on its own outside of a transaction, or COMMIT. */
export interface Statement {
  text: string;
  values?: readonly (string | number | boolean | null)[] | undefined;
  commits?: boolean | undefined;
}

/** Asks the server within the call's time. */
export type Ask = (statement: Statement) => Promise<Answer>;

/** What is known about a call over all its tries. */
export interface CallState {
  /** A commit was sent and its outcome never learnt. */
  unknown: boolean;
}

const RAW = { getTypeParser: () => (text: string | Buffer) => text.toString() };

/** Waits between tries: 20 ms, doubling to 500 ms, half of it by chance, so that replicas do not come back in step. */
const FIRST_PAUSE_MS = 20;
const LAST_PAUSE_MS = 500;

/** Each connection is made anew after this time, so that changed settings of the server and a moved address are seen. */
const CONNECTION_LIFE_SECONDS = 300;

export class Connections {
  readonly #pool: pg.Pool;
  readonly #url: string;
  readonly #timeoutMs: number;
  #closed: Promise<void> | undefined;
  /** Looks at each connection when it is made; what it throws, the call throws. */
  #check: (ask: Ask) => Promise<void>;

  constructor(
    config: pg.PoolConfig,
    limits: { url: string; timeoutMs: number; connectionCount: number; check: (ask: Ask) => Promise<void> },
  ) {
    this.#url = limits.url;
    this.#timeoutMs = limits.timeoutMs;
    this.#check = limits.check;
    this.#pool = new pg.Pool({
      keepAlive: true,
      idleTimeoutMillis: 60_000,
      maxLifetimeSeconds: CONNECTION_LIFE_SECONDS,
      application_name: "cellkit-ledger",
      ...config,
      pipeline: false,
      max: limits.connectionCount,
      connectionTimeoutMillis: limits.timeoutMs,
      onConnect: (client) => this.#welcome(client),
    });
    // An idle connection that breaks leaves the pool by itself; without a listener it would end the process.
    this.#pool.on("error", () => {});
  }

  /** Adds to what each further connection is looked at for. */
  alsoCheck(check: (ask: Ask) => Promise<void>): void {
    const before = this.#check;
    this.#check = async (ask) => {
      await before(ask);
      await check(ask);
    };
  }

  /**
   * Does work on one connection, again and again until it succeeds, fails for good, or the time is up.
   * @throws LedgerUnavailableError whose `recorded` is `maybe` once a commit's outcome was not learnt
   */
  async run<T>(
    work: (ask: Ask, state: CallState) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const untilMs = performance.now() + this.#timeoutMs;
    const state: CallState = { unknown: false };
    let before: unknown;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      signal?.throwIfAborted();
      const outcome = await this.#try(work, state, untilMs);
      if ("value" in outcome) return outcome.value;
      const { error, again } = outcome;
      const waitMs = pauseMs * (0.5 + Math.random() / 2);
      if (!again || performance.now() + waitMs >= untilMs) throw this.#explain(error, before, state);
      before = error;
      await sleep(waitMs);
    }
  }

  /** Closes all connections; a server that does not answer is not waited for longer than a call would be. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  async #end(): Promise<void> {
    const patience = new AbortController();
    await Promise.race([
      this.#pool.end().finally(() => patience.abort()),
      sleep(this.#timeoutMs, undefined, { ref: false, signal: patience.signal }).catch(() => {}),
    ]);
  }

  async #try<T>(
    work: (ask: Ask, state: CallState) => Promise<T>,
    state: CallState,
    untilMs: number,
  ): Promise<{ value: T } | { error: unknown; again: boolean }> {
    let client: pg.PoolClient | undefined;
    let broken = false;
    try {
      const held = await this.#checkOut(untilMs);
      client = held;
      const value = await work(async (statement) => {
        try {
          return await this.#ask(held, statement, untilMs);
        } catch (error) {
          // A session that cannot write stays so; a new connection may reach the primary that took over.
          broken ||= !isRefusal(error) || isPassing(error);
          state.unknown ||= statement.commits === true && !isRefusal(error);
          throw error;
        }
      }, state);
      return { value };
    } catch (error) {
      return { error, again: isPassing(error) };
    } finally {
      client?.release(broken || client.getTransactionStatus() !== "I");
    }
  }

  /** A connection from the pool; one that comes too late goes straight back. */
  async #checkOut(untilMs: number): Promise<pg.PoolClient> {
    const connecting = this.#pool.connect();
    try {
      return await this.#within(connecting, untilMs, () => {
        const { totalCount, idleCount } = this.#pool;
        return `no connection was to be had (${totalCount - idleCount} of ${this.#pool.options.max} in use)`;
      });
    } catch (error) {
      connecting.then(
        (client) => client.release(),
        () => {},
      );
      throw error;
    }
  }

  async #welcome(client: pg.ClientBase): Promise<void> {
    // A connection that breaks while it is in use also fails the query; without a listener the event would end the process.
    client.on("error", () => {});
    const untilMs = performance.now() + this.#timeoutMs;
    await this.#check((statement) => this.#ask(client, statement, untilMs));
  }

  async #ask(client: pg.ClientBase, statement: Statement, untilMs: number): Promise<Answer> {
    const { text, values = [], commits = false } = statement;
    let warning: string | undefined;
    const onNotice = (notice: { code?: string | undefined; message?: string | undefined }) => {
      if (notice.code !== "00000") warning = notice.message ?? "";
    };
    client.on("notice", onNotice);
    try {
      const asking = client.query<Record<string, string | null>>({ text, values: [...values], types: RAW });
      const result = await this.#within(asking, untilMs, () => "the server gave no answer");
      // A standby that was not waited for to the end is only a warning and looks like success, but may not last.
      if (commits && warning !== undefined)
        throw new AttemptFailure(`the server warned of a commit: ${warning}`, { passing: true });
      return { rows: result.rows, count: result.rowCount ?? 0, command: result.command };
    } finally {
      client.off("notice", onNotice);
    }
  }

  #within<T>(promise: Promise<T>, untilMs: number, problem: () => string): Promise<T> {
    const { promise: first, resolve, reject } = Promise.withResolvers<T>();
    const timer = setTimeout(
      () => reject(new AttemptFailure(`${problem()} within ${this.#timeoutMs} ms`, { passing: false })),
      Math.max(0, untilMs - performance.now()),
    );
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
    return first;
  }

  /** The error of a call that failed for good; what the try before it met says more than that the time was up. */
  #explain(error: unknown, before: unknown, { unknown }: CallState): LedgerError {
    if (error instanceof LedgerError) return error;
    const recorded = unknown ? "maybe" : "no";
    const earlier =
      error instanceof AttemptFailure && before !== undefined
        ? `; before that: ${describeFailure(before)}`
        : "";
    const problem = describeFailure(error) + earlier;
    return new LedgerUnavailableError(this.#url, problem, recorded, { cause: error });
  }
}
