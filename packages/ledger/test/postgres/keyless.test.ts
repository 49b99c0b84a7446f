// A table that loses its primary key under an open ledger, as by a restore without constraints.
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { openPostgresLedger, type PostgresLedgerOptions } from "../../src/postgres/index.ts";
import { PostgresServer } from "../support/postgres-server.ts";

const A = "http://10.20.0.11:8787";
const B = "http://10.20.0.12:8787";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

let table = "";
let tables = 0;
beforeEach(({ skip }) => {
  if (server === undefined) skip();
  table = `keyless_${tables++}`;
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

const rowsOf = (name: string) => sql(`SELECT * FROM ${name} WHERE record_key <> 'ledger'`);
const keyless = {
  code: "CELLKIT_LEDGER_UNAVAILABLE",
  recorded: "no",
  message: expect.stringContaining("no primary key (ledger, record_key)"),
};

const LOSSES: [string, () => Promise<unknown>][] = [
  [
    "is a copy without constraints",
    () =>
      sql(`ALTER TABLE ${table} RENAME TO ${table}_old; CREATE TABLE ${table} AS SELECT * FROM ${table}_old`),
  ],
  ["had its key dropped", () => sql(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey`)],
  [
    "has a key that is checked too late",
    () =>
      sql(
        `ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey; ALTER TABLE ${table} ADD PRIMARY KEY (ledger, record_key) DEFERRABLE`,
      ),
  ],
  [
    "has a wider key",
    () =>
      sql(
        `ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey; ALTER TABLE ${table} ADD PRIMARY KEY (ledger, record_key, claim_nonce)`,
      ),
  ],
];

it.each(LOSSES)("a table that %s takes no claim, and a known id keeps its owner", async (_, loseKey) => {
  const ledger = await open();
  const limited = await open({ capacity: 10 });
  await ledger.claim("known", "body", async () => A);
  await limited.lookup("known");
  await loseKey();
  for (const one of [ledger, limited]) {
    const races = Array.from({ length: 12 }, () => one.claim("race", "body", async () => B));
    for (const race of await Promise.allSettled(races)) expect(race).toMatchObject({ reason: keyless });
    await expect(one.restore("d".repeat(64), { backend: A, bodyHash: "x" })).rejects.toMatchObject(keyless);
    expect(await one.claim("known", "body", async () => B)).toMatchObject({
      kind: "existing",
      owner: { backend: A },
    });
  }
  expect(await rowsOf(table)).toHaveLength(1);
});

it("a key that is lost between the look and the INSERT of a claim lets nothing be written", async () => {
  const ledger = await open();
  const claim = ledger.claim("id", "body", async () => {
    await sql(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey`);
    return A;
  });
  await expect(claim).rejects.toMatchObject(keyless);
  expect(await rowsOf(table)).toEqual([]);
});

it("once the key is back, the same connections claim again", async () => {
  const ledger = await open();
  await sql(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey`);
  await expect(ledger.claim("id", "body", async () => A)).rejects.toMatchObject(keyless);
  await sql(`ALTER TABLE ${table} ADD PRIMARY KEY (ledger, record_key)`);
  expect(await ledger.claim("id", "body", async () => A)).toMatchObject({ kind: "new" });
});

it("an id that got two rows has no owner any more, and its neighbours do", async () => {
  const ledger = await open({ retirable: true });
  await ledger.claim("twice", "body", async () => A);
  await ledger.claim("once", "body", async () => A);
  const [row] = await sql(
    `SELECT record_key FROM ${table} WHERE record_key <> 'ledger' ORDER BY modified_at`,
  );
  await sql(`ALTER TABLE ${table} DROP CONSTRAINT ${table}_pkey`);
  await sql(`INSERT INTO ${table} SELECT * FROM ${table} WHERE record_key = '${row?.["record_key"]}'`);
  const corrupt = { code: "CELLKIT_LEDGER_CORRUPT", message: expect.stringContaining("several rows") };
  const [twice, once, claim, retirement] = await Promise.allSettled([
    ledger.lookup("twice"),
    ledger.lookup("once"),
    ledger.claim("twice", "body", async () => B),
    ledger.retire("twice", { quarantineMs: 0 }),
  ]);
  expect(once).toMatchObject({ value: { backend: A } });
  for (const call of [twice, claim, retirement]) expect(call).toMatchObject({ reason: corrupt });
});
