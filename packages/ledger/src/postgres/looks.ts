/** Looks for records: those that are wanted at the same time share a round trip. */
import type { Connections } from "./connections.ts";
import { checkMarker, type LedgerStatements, type Row, readRows } from "./table.ts";

/** How many looks are on their way at once; those that come meanwhile form the next ones, so that none waits when there is room. */
export const LOOKS_IN_FLIGHT = 2;

/** How many keys one look asks for. */
const MAX_KEYS = 64;

interface Wanted {
  key: string;
  resolve(row: Row | undefined): void;
  reject(error: unknown): void;
}

/** Finds rows by key. A look starts after it was asked for and so sees all that was acknowledged before. */
export class Looks {
  readonly #connections: Connections;
  readonly #statements: LedgerStatements;
  #waiting: Wanted[] = [];
  #inFlight = 0;

  constructor(connections: Connections, statements: LedgerStatements) {
    this.#connections = connections;
    this.#statements = statements;
  }

  find(key: string): Promise<Row | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<Row | undefined>();
    this.#waiting.push({ key, resolve, reject });
    // Not at once: others of the same turn go along.
    if (this.#waiting.length === 1) queueMicrotask(() => this.#send());
    return promise;
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#inFlight < LOOKS_IN_FLIGHT) {
      const group = this.#waiting.splice(0, MAX_KEYS);
      this.#inFlight++;
      void this.#look(group).finally(() => {
        this.#inFlight--;
        this.#send();
      });
    }
  }

  async #look(group: readonly Wanted[]): Promise<void> {
    try {
      const statement = this.#statements.find(group.map(({ key }) => key));
      const rows = await this.#connections.run(async (ask) => {
        const answer = await ask(statement);
        checkMarker(answer, this.#statements.ledgerId);
        return readRows(answer);
      }, undefined);
      const found = new Map<string, Row>();
      for (const row of rows) found.set(row.entry.key, found.has(row.entry.key) ? withoutOwner(row) : row);
      for (const { key, resolve } of group) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}

/** One of several rows of a key, as a table that lost its primary key can have: which of them is the owner's, nobody knows. */
function withoutOwner(row: Row): Row {
  const problem = "it has several rows: its table was without a primary key";
  return { ...row, entry: { ...row.entry, owner: undefined, problem } };
}
