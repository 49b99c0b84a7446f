import { createServer, type Server } from "node:net";

/** Below the range from which Linux takes the ports of outgoing connections (32768 and up), so that none of those gets in between. */
const firstPort = 10_240;
const lastPort = 32_000;

/**
 * `count` ports of loopback on which nothing listens now, for processes that must keep theirs over a restart. Another
 * program may take one before its owner listens: that start fails then, and says so.
 */
export async function freePorts(count: number): Promise<number[]> {
  const held: Server[] = [];
  const ports: number[] = [];
  while (ports.length < count) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
    const server = await listen(port);
    if (server === undefined) continue;
    held.push(server);
    ports.push(port);
  }
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Undefined when the port is taken. */
function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE" || error.code === "EACCES") resolve(undefined);
      else reject(error);
    });
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
