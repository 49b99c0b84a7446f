// An upstream on a unix socket whose every byte the test decides.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { RawClient } from "./raw-client.ts";

export class ScriptedUpstream {
  readonly path: string;
  readonly #server: Server;
  readonly #waiting: ((link: RawClient) => void)[] = [];
  readonly #arrived: RawClient[] = [];
  readonly #sockets = new Set<Socket>();
  /** Connections accepted so far. */
  dials = 0;

  constructor(path: string) {
    this.path = path;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.dials += 1;
      this.#sockets.add(socket);
      const link = new RawClient(socket);
      const next = this.#waiting.shift();
      if (next === undefined) this.#arrived.push(link);
      else next(link);
    });
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.path, resolve));
  }

  /** The next connection that was not handed out yet. */
  accept(): Promise<RawClient> {
    const link = this.#arrived.shift();
    if (link !== undefined) return Promise.resolve(link);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Starts one in a folder of its own; the test's end closes it. */
export async function startUpstream(): Promise<ScriptedUpstream> {
  const folder = await mkdtemp(join(tmpdir(), "splice-"));
  const upstream = new ScriptedUpstream(join(folder, "upstream.sock"));
  await upstream.listen();
  onTestFinished(async () => {
    await upstream.close();
    await rm(folder, { recursive: true });
  });
  return upstream;
}
