// A table that is dropped, emptied, replaced, or swallows what is written, under an open ledger.
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openPostgresLedger, type PostgresLedgerOptions } from "../../src/postgres/index.ts";
import { PostgresServer } from "../support/postgres-server.ts";

const A = "http://10.20.0.11:8787";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

let table = "";
let tables = 0;
beforeEach(({ skip }) => {
  if (server === undefined) skip();
  table = `emptied_${tables++}`;
});

async function sql(text: string): Promise<Record<string, unknown>[]> {
  return (await server?.query(text)) ?? [];
}

async function open(options: Partial<PostgresLedgerOptions> = {}) {
  const connection = server?.url() ?? "";
  const ledger = await openPostgresLedger({ connection, table, timeoutMs: 20_000, ...options });
  onTestFinished(() => ledger.close());
  return ledger;
}

const unavailable = (message: RegExp) => ({
  code: "CELLKIT_LEDGER_UNAVAILABLE",
  recorded: "no",
  message: expect.stringMatching(message),
});

describe("a ledger that is gone or another", () => {
  it("is no empty ledger: its table was dropped", async () => {
    const ledger = await open();
    await sql(`DROP TABLE ${table}`);
    await expect(ledger.claim("id", "body", async () => A)).rejects.toMatchObject(
      unavailable(/table is gone/),
    );
    await expect(open({ requireExisting: true })).rejects.toMatchObject({ code: "CELLKIT_LEDGER_MISSING" });
  });

  it.each<[string, () => Promise<unknown>]>([
    ["emptied", () => sql(`TRUNCATE ${table}`)],
    [
      "made anew, with another ledger of that name",
      async () => {
        await sql(`DROP TABLE ${table}`);
        await open();
      },
    ],
  ])("its table was %s: no call finds an id free, and the connections are the old ones", async (_, empty) => {
    const ledger = await open();
    const limited = await open({ capacity: 10 });
    await ledger.claim("id", "body", async () => A);
    // Before the look of a claim, and between it and the INSERT.
    const between = ledger.claim("other", "body", async () => {
      await empty();
      return A;
    });
    const gone = unavailable(/another ledger lies there than was opened/);
    await expect(between).rejects.toMatchObject(gone);
    for (const one of [ledger, limited]) {
      await expect(one.claim("id", "other body", async () => A)).rejects.toMatchObject(gone);
      await expect(one.lookup("id")).rejects.toMatchObject(gone);
      await expect(one.restore("d".repeat(64), { backend: A, bodyHash: "x" })).rejects.toMatchObject(gone);
      await expect(one.count()).rejects.toMatchObject(gone);
      await expect(one.entries()[Symbol.asyncIterator]().next()).rejects.toMatchObject(gone);
    }
    expect(await sql(`SELECT * FROM ${table} WHERE record_key <> 'ledger'`)).toEqual([]);
  });

  it("its table was emptied between the look and the count of a claim under a capacity", async () => {
    const ledger = await open({ capacity: 10 });
    const claim = ledger.claim("id", "body", async () => {
      await sql(`TRUNCATE ${table}`);
      return A;
    });
    await expect(claim).rejects.toMatchObject(unavailable(/another ledger lies there/));
  });

  it("is found out when connections are made anew", async () => {
    const ledger = await open();
    await sql(`UPDATE ${table} SET claim_nonce = 'another' WHERE record_key = 'ledger'`);
    await sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cellkit-ledger'",
    );
    await expect(ledger.lookup("id")).rejects.toMatchObject(unavailable(/another ledger lies there/));
  });
});

describe("an INSERT that the server takes and does not make", () => {
  it.each<[string, (name: string) => string]>([
    [
      "a trigger swallows it",
      (name) =>
        `CREATE FUNCTION swallow_${name}() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; ` +
        `CREATE TRIGGER swallow BEFORE INSERT ON ${name} FOR EACH ROW EXECUTE FUNCTION swallow_${name}()`,
    ],
    ["a rule turns it away", (name) => `CREATE RULE swallow AS ON INSERT TO ${name} DO INSTEAD NOTHING`],
  ])("%s: nobody is told new", async (_, swallow) => {
    const ledger = await open();
    const limited = await open({ capacity: 10 });
    await sql(swallow(table));
    for (const one of [ledger, limited]) {
      const lost = { code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "maybe" };
      await expect(one.claim("id", "body", async () => A)).rejects.toMatchObject(lost);
      await expect(one.restore("d".repeat(64), { backend: A, bodyHash: "x" })).rejects.toMatchObject(lost);
    }
  });
});
