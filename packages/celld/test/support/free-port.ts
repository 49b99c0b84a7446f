import { once } from "node:events";
import { createServer } from "node:net";

/** Below the range from which Linux takes the ports of outgoing connections, so that none of those gets in between. */
const firstPort = 10_240;
const lastPort = 32_000;

/** A loopback port on which nothing listens; for processes that must be told their port, and keep it over a restart. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
    const probe = createServer();
    probe.listen(port, "127.0.0.1");
    const isFree = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
