import { expect, test } from "vitest";
import { get, ok, splice } from "./support/spliced.ts";

/** The refusal up to its date: every byte counts, clients match it. */
const refusalHead =
  "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n" +
  "proxy-status: celld; error=destination_unavailable\r\ncellkit-outcome: not-run\r\nconnection: close\r\n" +
  "content-length: 28\r\n";
const refusalBody = '{"ok":false,"draining":true}';

test("an old keep-alive connection's request after the flag gets the exact refusal and a FIN", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive("\r\n\r\n");
  link.send(ok("one"));
  await client.receive("one");
  server.drain();
  client.bytes = Buffer.alloc(0);
  client.send(get);
  const text = await client.end();
  expect(text.startsWith(refusalHead)).toBe(true);
  expect(text.endsWith(`\r\n\r\n${refusalBody}`)).toBe(true);
  expect(link.text).toBe(get);
});

test("an answer in flight is whole, says close, and a FIN follows", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive("\r\n\r\n");
  server.drain();
  link.send(ok("whole"));
  expect(await client.end()).toBe("HTTP/1.1 200 OK\r\nconnection: close\r\nContent-Length: 5\r\n\r\nwhole");
});
