import { afterAll, beforeAll, describe, it } from "vitest";
import { ledgerConformance } from "../../src/conformance/index.ts";
import { parseRecord } from "../../src/core/record.ts";
import { openPostgresLedger } from "../../src/postgres/index.ts";
import { PostgresServer } from "../support/postgres-server.ts";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** A place is a table. */
const tableOf = (place: string) => place.replaceAll("-", "_");

describe("a ledger in PostgreSQL keeps the rules of every ledger:", () => {
  const cases = ledgerConformance(
    (place, options) =>
      openPostgresLedger({
        ...options,
        connection: server?.url() ?? "",
        table: tableOf(place),
        connectionCount: 8,
        timeoutMs: 20_000,
      }),
    {
      // What a text has wrong, its columns have: one that is no record leaves a row whose backend is no origin.
      plant: async (place, key, bytes) => {
        const parsed = parseRecord(bytes);
        const owner =
          "owner" in parsed ? parsed.owner : { backend: bytes.toString().slice(0, 4_096), bodyHash: "" };
        await server?.query(
          `INSERT INTO ${tableOf(place)} VALUES ('executions', '${key}', 1, '${owner.backend}', '${owner.bodyHash}', 'planted', FALSE, CURRENT_TIMESTAMP)`,
        );
      },
    },
  );
  it.for(cases)("$name", async (rule, { skip }) => {
    if (server === undefined || rule.skip !== undefined) return skip(rule.skip);
    await rule.run();
  });
});
