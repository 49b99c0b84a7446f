import { expect, test } from "vitest";
import { singleConnection } from "../src/single-connection.ts";
import { patient } from "./support/client.ts";
import { rawRouter } from "./support/raw-router.ts";

test("a second connection of one call is refused without dialling", async () => {
  await using router = await rawRouter(() => undefined);
  const { hostname, host, port, protocol } = new URL(router.url);
  let connected = 0;
  const call = {
    ca: undefined,
    clientCertificate: undefined,
    connectTimeoutMs: 5_000,
    signal: new AbortController().signal,
  };
  const connect = singleConnection(call, () => connected++);
  const dial = () =>
    new Promise((resolve) =>
      connect({ hostname, host, port, protocol }, (error, socket) => resolve(error ?? socket)),
    );
  expect(await dial()).toMatchObject({ remoteAddress: "127.0.0.1" });
  expect(await dial()).toMatchObject({ name: "ExchangeEndError" });
  expect(connected).toBe(1);
  await expect.poll(() => router.connections(), patient).toBe(1);
});
