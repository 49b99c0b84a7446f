import { onTestFinished } from "vitest";
import type { SpliceServerOptions } from "../../src/options.ts";
import { createSpliceServer, type SpliceServer } from "../../src/server.ts";
import { dial, type RawClient } from "./raw-client.ts";
import { type ScriptedUpstream, startUpstream } from "./scripted-upstream.ts";

export interface Spliced {
  server: SpliceServer & {
    /** Waits until what was sent to the server has been handled: a round trip on a connection of its own. */
    idle(): Promise<void>;
  };
  upstream: ScriptedUpstream;
  port: number;
  dial(): Promise<RawClient>;
}

/** A splice server before a scripted upstream; the test's end closes both. A client is waited for until it ends. */
export async function splice(
  options: SpliceServerOptions = {},
  path: (upstreamPath: string) => string | undefined = (upstreamPath) => upstreamPath,
): Promise<Spliced> {
  const upstream = await startUpstream();
  const server = createSpliceServer(() => path(upstream.path), { lingerMs: 600_000, ...options });
  const { port } = await server.listen("127.0.0.1", 0);
  onTestFinished(() => server.close());
  const idle = async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      const probe = await dial(port);
      probe.send("PROBE / HTTP/9\r\n\r\n");
      await probe.end();
      probe.socket.end();
    }
  };
  return { server: Object.assign(server, { idle }), upstream, port, dial: () => dial(port) };
}

/** A client whose first request was answered, and which is idle; nothing of that is left in its bytes. */
export async function dialAndServe(
  upstream: ScriptedUpstream,
  dialServer: () => Promise<RawClient>,
): Promise<{ client: RawClient; link: RawClient }> {
  const client = await dialServer();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send(ok("first"));
  await client.receive("first");
  client.bytes = Buffer.alloc(0);
  return { client, link };
}

/** The head of an upload. */
export function post(lengthBytes: number): string {
  return `POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: ${lengthBytes}\r\n\r\n`;
}

export const get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

/** An answer by length. */
export function ok(body: string, fields = ""): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${fields}\r\n${body}`;
}
