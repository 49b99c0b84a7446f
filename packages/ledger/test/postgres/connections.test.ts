import { afterAll, beforeAll, expect, it } from "vitest";
import { LedgerUnavailableError } from "../../src/errors.ts";
import { Connections } from "../../src/postgres/connections.ts";
import { PostgresServer } from "../support/postgres-server.ts";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** Again until there is a connection: the time is short for who waits in vain, and a busy machine may take longer to make one. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LedgerUnavailableError)) throw error;
    }
  }
}

it("who finds every connection taken is told how many are in use, and finds one when it is given back", async ({
  skip,
}) => {
  const running = server ?? skip();
  const connections = new Connections(
    { connectionString: running.url() },
    { url: "postgres://server", timeoutMs: 1_000, connectionCount: 1, check: async () => {} },
  );
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  try {
    const first = patiently(() =>
      connections.run(async () => {
        take();
        await released;
      }, undefined),
    );
    await taken;
    const second = connections.run((ask) => ask({ text: "SELECT 1" }), undefined);
    await expect(second).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_UNAVAILABLE",
      message: expect.stringContaining("1 of 1 in use"),
    });
    release();
    await first;
    const third = patiently(() => connections.run((ask) => ask({ text: "SELECT 1" }), undefined));
    expect(await third).toMatchObject({ count: 1 });
  } finally {
    release();
    await connections.close();
  }
});
