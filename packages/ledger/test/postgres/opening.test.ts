import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import type { LedgerEntry } from "../../src/ledger.ts";
import { ledgerTableSql, openPostgresLedger, type PostgresLedgerOptions } from "../../src/postgres/index.ts";
import { localPlace } from "../../src/qualification/agent-connection.ts";
import { qualifyLedger } from "../../src/qualification/qualify-ledger.ts";
import { PostgresServer } from "../support/postgres-server.ts";

const A = "http://10.20.0.11:8787";
const HOUR_MS = 3_600_000;

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
  for (const role of [
    "plain LOGIN",
    "careless LOGIN; ALTER ROLE careless SET synchronous_commit = off",
    "halfway LOGIN; ALTER ROLE halfway SET synchronous_commit = local",
    "reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on",
    "locked LOGIN PASSWORD 'right-password'",
  ])
    await server?.query(`CREATE ROLE ${role}`);
});
afterAll(() => server?.[Symbol.asyncDispose]());

let table = "";
let tables = 0;
beforeEach(({ skip }) => {
  if (server === undefined) skip();
  table = `opening_${tables++}`;
});

async function sql(text: string): Promise<Record<string, unknown>[]> {
  return (await server?.query(text)) ?? [];
}

/** Opens this test's table, as the superuser unless said otherwise. */
async function open(options: Partial<PostgresLedgerOptions> & { user?: string } = {}) {
  const { user, ...rest } = options;
  const connection = server?.url(user) ?? "";
  const ledger = await openPostgresLedger({ connection, table, timeoutMs: 20_000, ...rest });
  onTestFinished(() => ledger.close());
  return ledger;
}

/** Fails with this after a short time, in which a busy machine may not come as far as that the first time. */
async function expectFailure(options: Parameters<typeof open>[0], failure: object): Promise<void> {
  const failing = () => open(options).catch((error: unknown) => error);
  await expect.poll(failing, { timeout: 30_000 }).toMatchObject(failure);
}

const unsupported = (message: RegExp) => ({
  code: "CELLKIT_LEDGER_UNSUPPORTED",
  message: expect.stringMatching(message),
});
const unavailable = (message: RegExp) => ({
  code: "CELLKIT_LEDGER_UNAVAILABLE",
  recorded: "no",
  message: expect.stringMatching(message),
});

describe("a server that would lose what it acknowledged is refused:", () => {
  it.each(["careless", "halfway"])("the role %s does not wait for commits", async (user) => {
    await expect(open({ user })).rejects.toMatchObject(unsupported(/synchronous_commit is (off|local)/));
  });

  it("is not qualified either, which is more than not knowing", async () => {
    await sql(`GRANT ALL ON SCHEMA public TO careless`);
    const places = [localPlace({ command: "/nonexistent", args: [] })] as const;
    const found = await qualifyLedger(server?.url("careless") ?? "", { places });
    expect(found).toMatchObject({ verdict: "violated", checks: [{ name: "settings", result: "failed" }] });
    expect(found.checks[0]?.detail).toMatch(/synchronous_commit is off/);
  });

  it("what is refused for its role is taken when the connection sets it right", async () => {
    await sql(`GRANT ALL ON SCHEMA public TO careless`);
    const connection = `${server?.url("careless")}?options=-c%20synchronous_commit%3Don`;
    const ledger = await open({ connection });
    expect(await ledger.claim("id", "body", async () => A)).toMatchObject({ kind: "new" });
  });

  it.each(["fsync", "full_page_writes"])("%s is off", async (setting) => {
    const set = async (value: string) => {
      await sql(`ALTER SYSTEM SET ${setting} = ${value}`);
      await sql("SELECT pg_reload_conf()");
      await expect.poll(() => sql(`SHOW ${setting}`), { timeout: 20_000 }).toEqual([{ [setting]: value }]);
    };
    await set("off");
    try {
      await expect(open()).rejects.toMatchObject(unsupported(new RegExp(`${setting} is off`)));
    } finally {
      await set("on");
    }
  });

  it("a session that cannot write may be a replica, where claims can be missing", async () => {
    await expectFailure({ user: "reader", timeoutMs: 1_000 }, unavailable(/is a replica/));
  });
});

describe("a table that is no ledger's is refused, and left as it is:", () => {
  const layout = (change: (text: string) => string) => change(ledgerTableSql(table));
  it.each<[string, () => string, RegExp]>([
    ["other columns", () => `CREATE TABLE ${table} (id INTEGER)`, /a table of something else/],
    [
      "no primary key",
      () => layout((text) => text.replace(/,\n\s*PRIMARY KEY \(.*\)/, "")),
      /no primary key/,
    ],
    [
      "another primary key",
      () => layout((text) => text.replace("(ledger, record_key)", "(ledger, record_key, claim_nonce)")),
      /primary key of .* is \(ledger, record_key, claim_nonce\)/,
    ],
    [
      "a primary key that is checked later",
      () => layout((text) => text.replace("record_key)", "record_key) DEFERRABLE INITIALLY DEFERRED")),
      /is DEFERRABLE/,
    ],
    ["UNLOGGED", () => layout((text) => text.replace("TABLE", "UNLOGGED TABLE")), /a crash would empty it/],
    [
      "row level security",
      () => `${ledgerTableSql(table)}; ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`,
      /could hide records/,
    ],
    [
      "another version",
      () =>
        `${ledgerTableSql(table)}; INSERT INTO ${table} VALUES ('executions', 'ledger', 2, '', '', 'x', FALSE, CURRENT_TIMESTAMP)`,
      /layout is of version 2/,
    ],
  ])("%s", async (_, create, message) => {
    await sql(create());
    const before = await sql(`SELECT * FROM ${table}`);
    await expect(open()).rejects.toMatchObject(unsupported(message));
    expect(await sql(`SELECT * FROM ${table}`)).toEqual(before);
  });

  it("a name that must be quoted is a mistake", async () => {
    for (const bad of ["Ledger", "a; DROP TABLE b", "a.b.c", ""])
      await expect(open({ table: bad })).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
  });
});

describe("what a role may not do", () => {
  it("create tables: it is told, and opens what an administrator made", async () => {
    await expect(open({ user: "plain" })).rejects.toMatchObject(
      unavailable(/permission denied.*cellkit ledger sql/),
    );
    await sql(ledgerTableSql(table));
    await sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${table} TO plain`);
    const ledger = await open({ user: "plain" });
    expect(await ledger.claim("id", "body", async () => A)).toMatchObject({ kind: "new" });
  });

  it("write: nothing is recorded, and lookups work on", async () => {
    await sql(ledgerTableSql(table));
    await sql(`GRANT SELECT, INSERT ON ${table} TO plain`);
    const ledger = await open({ user: "plain" });
    await sql(`REVOKE INSERT ON ${table} FROM plain`);
    await expect(ledger.claim("id", "body", async () => A)).rejects.toMatchObject(
      unavailable(/grant the role/),
    );
    expect(await ledger.lookup("id")).toBeUndefined();
  });

  it("log in: it is told at once, without the password", async () => {
    const connection = server?.url("locked:wrong-password") ?? "";
    // Longer than this test may take: it is not waited for.
    const error = await open({ connection, timeoutMs: 600_000 }).catch((caught: unknown) => caught);
    expect(error).toMatchObject(unavailable(/password authentication failed/));
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain("wrong-password");
    const ledger = await open({ connection: server?.url("locked:right-password") ?? "" }).catch(String);
    expect(inspect(ledger, { depth: 20, showHidden: false })).not.toContain("right-password");
  });
});

describe("a connection that cannot be used", () => {
  it.each(["postgresql://user:geheim@host:no-port/x", "postgresql://user:geheim@[host/x"])(
    "%s is an option error without the password",
    async (connection) => {
      const error = await open({ connection }).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain("geheim");
    },
  );

  it("has a certificate authority that cannot be read", async () => {
    const connection = `${server?.url()}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`;
    await expect(open({ connection })).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_OPTION",
      message: expect.stringContaining("ENOENT"),
    });
  });

  it("wants TLS where there is none: no plain connection instead", async () => {
    const connection = `${server?.url()}?sslmode=verify-full`;
    await expectFailure({ connection, timeoutMs: 1_000 }, unavailable(/SSL/));
  });

  it("leads nowhere: the time is waited for, since a server may be restarting", async () => {
    const connection = "postgresql://postgres@127.0.0.1:1/cells";
    await expectFailure(
      { connection, timeoutMs: 200 },
      unavailable(/postgres@127\.0\.0\.1:1\/cells.* ECONNREFUSED .*: see that the address has .* port/),
    );
  });

  it.each<[string, string, string, RegExp]>([
    ["a role that is not there", "nobody:geheim", "cells", /role "nobody" does not exist.*names a role/],
    ["a database that is not there", "postgres", "cels", /database "cels" does not exist.*names a database/],
    ["a password that is missing", "locked", "cells", /password.*\(PGPASSWORD\)/],
  ])("names %s: who was to be let in where is told, and what to do", async (_, user, database, message) => {
    const connection = server?.url(user, database) ?? "";
    const error = await open({ connection }).catch((caught: unknown) => caught);
    expect(error).toMatchObject(unavailable(message));
    const place = `postgresql://${user.replace(/:.*/, "")}@127.0.0.1:${server?.port}/${database}#`;
    expect(error).toMatchObject({ message: expect.stringContaining(place) });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain("geheim");
  });

  it("is to a host that no DNS knows", async () => {
    const connection = "postgresql://postgres@db.invalid/cells";
    await expectFailure(
      { connection, timeoutMs: 200 },
      unavailable(/db\.invalid.*: (see that the host's name is right|DNS gave no answer)/),
    );
  });

  it("options out of range are refused", async () => {
    const mistake = { connection: undefined as unknown as string };
    for (const options of [{ connectionCount: 0 }, { timeoutMs: 0.5 }, { timeoutMs: 1e9 }, mistake])
      await expect(open(options)).rejects.toMatchObject({ code: "CELLKIT_LEDGER_OPTION" });
  });
});

describe("rows that were edited by hand", () => {
  it.each([
    ["version = 2", /version is 2/],
    ["backend = 'https://10.0.0.1'", /no http/],
    ["backend = ''", /no http/],
    ["body_hash = REPEAT('x', 4096)", /more than 4096 bytes/],
  ])("%s: refused with the reason, and left as they are", async (change, problem) => {
    const ledger = await open({ retirable: true });
    await ledger.claim("id", "body", async () => A);
    await sql(`UPDATE ${table} SET ${change}, marked = TRUE WHERE record_key <> 'ledger'`);
    const before = await sql(`SELECT * FROM ${table}`);
    const corrupt = { code: "CELLKIT_LEDGER_CORRUPT", message: expect.stringMatching(problem) };
    await expect(ledger.lookup("id")).rejects.toMatchObject(corrupt);
    await expect(ledger.claim("id", "body", async () => A)).rejects.toMatchObject(corrupt);
    await expect(ledger.retire("id", { quarantineMs: 0 })).rejects.toMatchObject(corrupt);
    expect(await ledger.sweep({ quarantineMs: 0 })).toBe(0);
    expect(await sql(`SELECT * FROM ${table}`)).toEqual(before);
  });

  it("a key that is no hash is listed with its problem", async () => {
    const ledger = await open();
    await sql(
      `INSERT INTO ${table} VALUES ('executions', 'Foreign', 1, '${A}', 'x', 'n', FALSE, CURRENT_TIMESTAMP)`,
    );
    const entries: LedgerEntry[] = [];
    for await (const entry of ledger.entries()) entries.push(entry);
    expect(entries).toMatchObject([{ key: "Foreign", owner: undefined, problem: expect.any(String) }]);
  });
});

describe("clocks", () => {
  it("without one of the caller's, ages are the server's own", async () => {
    const ledger = await open({ retirable: true });
    await ledger.claim("old", "body", async () => A);
    await sql(
      `UPDATE ${table} SET modified_at = CURRENT_TIMESTAMP - INTERVAL '1 hour' WHERE record_key <> 'ledger'`,
    );
    await ledger.claim("young", "body", async () => A);
    expect(await ledger.retire("young", { quarantineMs: HOUR_MS / 2 })).toBe(false);
    expect(await ledger.retire("old", { quarantineMs: HOUR_MS / 2 })).toBe(true);
    expect(await ledger.sweep({ quarantineMs: HOUR_MS / 2 })).toBe(0);
    expect(await ledger.count()).toBe(1);
  });

  it("a record from the future is young, however it came there", async () => {
    let aheadMs = -2 * HOUR_MS;
    const ledger = await open({ retirable: true, now: () => Date.now() + aheadMs });
    await ledger.claim("id", "body", async () => A);
    expect(await ledger.retire("id", { quarantineMs: 0 })).toBe(false);
    aheadMs = 2 * HOUR_MS;
    expect(await ledger.sweep({ quarantineMs: HOUR_MS })).toBe(1);
  });
});

it("more records than one page are listed, counted and swept", async () => {
  const ledger = await open({ retirable: true });
  const { key } = await loadDigest();
  const keys = Array.from({ length: 1_100 }, (_, index) => key(`id ${index}`));
  const rows = keys.map(
    (hash) => `('executions', '${hash}', 1, '${A}', 'x', '${hash.slice(0, 36)}', TRUE, CURRENT_TIMESTAMP)`,
  );
  await sql(`INSERT INTO ${table} VALUES ${rows.join()}`);
  const found = new Set<string>();
  for await (const entry of ledger.entries()) found.add(entry.key);
  expect(found).toEqual(new Set(keys));
  expect(await ledger.count()).toBe(1_100);
  expect(await ledger.sweep({ quarantineMs: 0 })).toBe(1_100);
  expect(await ledger.count()).toBe(0);
});

it("the address names the ledger and the user, without the password", async () => {
  const ledger = await open({ connection: server?.url("postgres:geheim") ?? "", name: "scoped-ops" });
  expect(ledger.url).toBe(`postgresql://postgres@127.0.0.1:${server?.port}/cells#scoped-ops`);
});
