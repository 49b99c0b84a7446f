import { afterAll, beforeAll, expect, it } from "vitest";
import { Connections } from "../../src/postgres/connections.ts";
import { PostgresServer } from "../support/postgres-server.ts";

let server: PostgresServer | undefined;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server?.[Symbol.asyncDispose]());

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
    const first = connections.run(async () => {
      take();
      await released;
    }, undefined);
    await taken;
    const second = connections.run((ask) => ask({ text: "SELECT 1" }), undefined);
    await expect(second).rejects.toMatchObject({
      code: "CELLKIT_LEDGER_UNAVAILABLE",
      message: expect.stringContaining("1 of 1 in use"),
    });
    release();
    await first;
    await expect(connections.run((ask) => ask({ text: "SELECT 1" }), undefined)).resolves.toMatchObject({
      count: 1,
    });
  } finally {
    release();
    await connections.close();
  }
});
