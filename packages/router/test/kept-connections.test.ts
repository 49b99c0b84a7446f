import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { KeptConnections } from "../src/backend/kept-connections.ts";

/** A connection as a router has it, and its other end. */
async function openPair() {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [far] = await accepted;
  await until("a connection", () => !near.connecting);
  return {
    near,
    far,
    [Symbol.asyncDispose]: async () => {
      near.destroy();
      far.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

it("a connection is taken again only behind a turn of the event loop", async () => {
  await using pair = await openPair();
  const kept = new KeptConnections();
  kept.give("http://a", pair.near);
  expect(kept.take("http://a")).toBeUndefined();
  await new Promise((resolve) => setImmediate(resolve));
  expect(kept.take("http://a")).toBeUndefined();
  expect(await until("the connection", () => kept.take("http://a"))).toBe(pair.near);
});

it("one on which bytes wait when it is given back is never taken", async () => {
  await using pair = await openPair();
  const kept = new KeptConnections();
  // Nobody listens yet, so they wait.
  pair.far.write("HTTP/1.1 200 OK");
  await new Promise((resolve) => pair.far.write("\r\n", resolve));
  kept.give("http://a", pair.near);
  await until("its end", () => pair.near.destroyed);
  expect(kept.take("http://a")).toBeUndefined();
});

it("those that are not to be taken yet are ended, too", async () => {
  await using pair = await openPair();
  const kept = new KeptConnections();
  kept.give("http://a", pair.near);
  kept.close();
  expect(pair.near.destroyed).toBe(true);
  await new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
  expect(kept.take("http://a")).toBeUndefined();
});
