// What a claim costs beside the single INSERT that PostgreSQL itself cannot do without, and how long a lookup waits meanwhile.
import { randomUUID } from "node:crypto";
import pg from "pg";
import { loadDigest } from "../src/digest.ts";
import type { StoredLedger } from "../src/ledger.ts";
import { openPostgresLedger } from "../src/postgres/index.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { measureLooks, measureRate } from "./support/storm.ts";

const WAITING_COUNT = 64;
const CLAIMS_A_ROUND = 1_024;
const CONNECTION_COUNT = 16;
const BACKEND = "http://10.20.0.11:8787";
const BODY = "x".repeat(1_024);

interface Sides {
  ledger: StoredLedger;
  claim(): Promise<unknown>;
  /** The INSERT of a row as large, by pg and nothing else. */
  insert(): Promise<unknown>;
  select(): Promise<unknown>;
  close(): Promise<void>;
}

async function openSides(): Promise<Sides> {
  const server = await PostgresServer.start();
  if (server === undefined) throw new TypeError("there is no PostgreSQL on this machine");
  const ledger = await openPostgresLedger({ connection: server.url(), connectionCount: CONNECTION_COUNT });
  const pool = new pg.Pool({ connectionString: server.url(), max: CONNECTION_COUNT });
  await pool.query(
    "CREATE TABLE plain (record_key VARCHAR(64) PRIMARY KEY, backend VARCHAR(4096), body_hash VARCHAR(4096), claim_nonce VARCHAR(36))",
  );
  const { key, bodyHash } = await loadDigest();
  const hash = bodyHash(BODY);
  let count = 0;
  const insert = (id: string) =>
    pool.query("INSERT INTO plain VALUES ($1, $2, $3, $4)", [key(id), BACKEND, hash, randomUUID()]);
  await insert("known");
  await ledger.claim("known", BODY, async () => BACKEND);
  return {
    ledger,
    claim: () => ledger.claim(`run-${count++}`, BODY, async () => BACKEND),
    insert: () => insert(`run-${count++}`),
    select: () => pool.query("SELECT * FROM plain WHERE record_key = $1", [key("known")]),
    async close() {
      await ledger.close();
      await pool.end();
      await server[Symbol.asyncDispose]();
    },
  };
}

const CONDITIONS =
  `${WAITING_COUNT} waiting, ${CONNECTION_COUNT} connections each, ${CLAIMS_A_ROUND} a round; a server of its own on this machine, ` +
  "fsync and synchronous_commit on, no standby; wall-clock";

export const benchmarks = [
  {
    name: "ledger/postgres-claims",
    subject: "claims of new ids: a look, then one INSERT",
    against: "plain single-row INSERTs with pg, a row as large and a primary key",
    unit: "claims/s",
    roundCount: 11,
    conditions: CONDITIONS,
    async setup() {
      const sides = await openSides();
      return {
        subject: () => measureRate(WAITING_COUNT, CLAIMS_A_ROUND, sides.claim),
        against: () => measureRate(WAITING_COUNT, CLAIMS_A_ROUND, sides.insert),
        close: sides.close,
      };
    },
  },
  {
    name: "ledger/postgres-lookup-p99",
    subject: "a lookup while 64 claim new ids, 99th percentile",
    against: "a plain SELECT of such a row while 64 plain INSERTs wait",
    unit: "ms",
    roundCount: 5,
    conditions: `a lookup each 2 ms, from when it was due to its answer; ${CONDITIONS}`,
    async setup() {
      const sides = await openSides();
      return {
        subject: () =>
          measureLooks(
            () => measureRate(WAITING_COUNT, 2 * CLAIMS_A_ROUND, sides.claim),
            () => sides.ledger.lookup("known"),
            2,
          ),
        against: () =>
          measureLooks(() => measureRate(WAITING_COUNT, 2 * CLAIMS_A_ROUND, sides.insert), sides.select, 2),
        close: sides.close,
      };
    },
  },
];
