// The messages of one room, in its SQLite database. Nothing is deduplicated: whoever sends an id twice finds it twice.

/** How many messages one page of `after` holds. */
const pageCount = 100;

/** One stored message, without its text. `n` counts from 1 in the order of arrival, `bytes` is the body's length. */
export type StoredMessage = { n: number; id: string; bytes: number };

/** The table of messages. It is created when the room's first instance opens it. */
export class Messages {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS messages (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, bytes INTEGER NOT NULL, text TEXT)",
    );
  }

  /** Stores one message and returns its number; `text` only for what came over a socket. */
  insert(id: string, bytes: number, text: string | null = null): number {
    return this.#sql
      .exec<{ n: number }>(
        "INSERT INTO messages (id, bytes, text) VALUES (?, ?, ?) RETURNING n",
        id,
        bytes,
        text,
      )
      .one().n;
  }

  /** How many messages the room holds. */
  count(): number {
    return this.#sql.exec<{ count: number }>("SELECT count(*) AS count FROM messages").one().count;
  }

  /** A page of the messages numbered above `n`, and the `after` of the next page (null at the end). */
  after(n: number): { messages: StoredMessage[]; next: number | null } {
    const messages = this.#sql
      .exec<StoredMessage>("SELECT n, id, bytes FROM messages WHERE n > ? ORDER BY n LIMIT ?", n, pageCount)
      .toArray();
    return { messages, next: messages.length < pageCount ? null : (messages.at(-1)?.n ?? null) };
  }

  /** Every id with the number of times that it was stored. */
  occurrences(): Record<string, number> {
    const rows = this.#sql.exec<{ id: string; times: number }>(
      "SELECT id, count(*) AS times FROM messages GROUP BY id",
    );
    return Object.fromEntries(rows.toArray().map(({ id, times }) => [id, times]));
  }
}
