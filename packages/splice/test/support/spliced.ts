import { onTestFinished } from "vitest";
import type { SpliceServerOptions } from "../../src/options.ts";
import { createSpliceServer, type SpliceServer } from "../../src/server.ts";
import { dial, type RawClient } from "./raw-client.ts";
import { type ScriptedUpstream, startUpstream } from "./scripted-upstream.ts";

export interface Spliced {
  server: SpliceServer;
  upstream: ScriptedUpstream;
  port: number;
  dial(): Promise<RawClient>;
}

/** A splice server before a scripted upstream; the test's end closes both. */
export async function splice(options: SpliceServerOptions = {}): Promise<Spliced> {
  const upstream = await startUpstream();
  const server = createSpliceServer(() => upstream.path, { lingerMs: 300, ...options });
  const { port } = await server.listen("127.0.0.1", 0);
  onTestFinished(() => server.close());
  return { server, upstream, port, dial: () => dial(port) };
}

export const get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

/** An answer by length. */
export function ok(body: string, fields = ""): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${fields}\r\n${body}`;
}
