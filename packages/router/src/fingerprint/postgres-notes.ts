// Notes as rows of the ledgers' table, so that a role that may use the ledger may do this too. They belong to a ledger whose name no
// ledger can have. A connection of its own for each look: there is one in half a minute.
import pg from "pg";
import { maxNoteCount, notePrefix, type ReplicaNotes, replicaOf } from "./replica-notes.ts";

const place = "executions/replicas";
const timeoutMs = 5_000;
const uniqueViolation = "23505";

/** Notes in the database of a ledger. */
export function postgresNotes(connectionString: string): ReplicaNotes {
  const ask = async (text: string, values: readonly unknown[]): Promise<pg.QueryResult> => {
    const client = new pg.Client({
      connectionString,
      application_name: "cellkit-router",
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    });
    // The query fails as well; without a listener the event would end the process.
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.query(text, [...values]);
    } finally {
      await client.end();
    }
  };
  return {
    async write(replica, text) {
      const key = `${notePrefix}${replica}`;
      const update =
        "UPDATE cellkit_ledger SET backend = $3, modified_at = CURRENT_TIMESTAMP WHERE ledger = $1 AND record_key = $2";
      if ((await ask(update, [place, key, text])).rowCount === 1) return;
      const insert =
        "INSERT INTO cellkit_ledger (ledger, record_key, version, backend, body_hash, claim_nonce, marked, modified_at) VALUES ($1, $2, 1, $3, '', '', FALSE, CURRENT_TIMESTAMP)";
      try {
        await ask(insert, [place, key, text]);
      } catch (error) {
        if ((error as { code?: string }).code !== uniqueViolation) throw error;
      }
    },
    async list() {
      const { rows } = await ask(
        `SELECT record_key, backend, EXTRACT(EPOCH FROM modified_at) * 1000 AS written_ms FROM cellkit_ledger WHERE ledger = $1 ORDER BY modified_at DESC FETCH FIRST ${maxNoteCount} ROWS ONLY`,
        [place],
      );
      return rows.flatMap((row: { record_key: string; backend: string; written_ms: string }) => {
        const replica = replicaOf(row.record_key);
        if (replica === undefined) return [];
        return [{ replica, text: row.backend, writtenMs: Number(row.written_ms) }];
      });
    },
    async nowMs() {
      const { rows } = await ask("SELECT EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) * 1000 AS now_ms", []);
      return Number((rows[0] as { now_ms: string } | undefined)?.now_ms);
    },
    async remove(replica) {
      await ask("DELETE FROM cellkit_ledger WHERE ledger = $1 AND record_key = $2", [
        place,
        `${notePrefix}${replica}`,
      ]);
    },
    close: async () => undefined,
  };
}
