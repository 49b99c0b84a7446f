import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from "vitest";
import { openPostgresLedger } from "../../src/postgres/index.ts";
import { crashRounds } from "../support/crash-rounds.ts";
import { PostgresServer } from "../support/postgres-server.ts";

/** Generous, since processes are started while other work may hold the processors. */
const TIME_LIMIT_MS = 1_800_000;

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

it(
  "a process killed between any two messages leaves no second owner and no lost claim",
  async ({ skip }) => {
    if (server === undefined) return skip();
    const connection = server.url();
    // The children load the same modules each time.
    const cache = await mkdtemp(join(tmpdir(), "cellkit-cache-"));
    onTestFinished(() => rm(cache, { recursive: true }));
    const { crashCount, points } = await crashRounds(
      {
        name: "PostgreSQL",
        child: new URL("../support/postgres-crash-child.ts", import.meta.url),
        open: (name, options) => openPostgresLedger({ ...options, name, connection, timeoutMs: 20_000 }),
        env: { CELLKIT_TEST_POSTGRES: connection, NODE_COMPILE_CACHE: cache },
        capacity: true,
        lateWrites: true,
      },
      { crashCount: inject("size") === "long" ? 1_000 : 100, seed: inject("seed") },
    );
    expect(crashCount).toBeGreaterThanOrEqual(100);
    // The places before, after and within each of at least a connection, a look and a write.
    expect(Math.min(...Object.values(points))).toBeGreaterThan(10);
  },
  TIME_LIMIT_MS,
);
