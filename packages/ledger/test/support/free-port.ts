import { createServer } from "node:net";

/** Below the range from which systems take the ports of outgoing connections, so that none of those gets in between. */
const FIRST_PORT = 10_240;
const LAST_PORT = 32_000;

/** A loopback port on which nothing listens, for a server that must be told its port and keeps it over a restart. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((done) => server.close(done));
    return port;
  }
}
