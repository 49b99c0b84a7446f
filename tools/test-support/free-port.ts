import { createSocket } from "node:dgram";
import { type EventEmitter, once } from "node:events";
import { createServer } from "node:net";

/** Below the range from which Linux takes the ports of outgoing connections, so that none of those gets in between. */
const firstPort = 10_240;
const lastPort = 32_000;

/**
 * A loopback port on which nothing listens; for processes that must be told their port, and keep it over a restart. It is given
 * to nobody else, in other processes neither, while this process lives: the UDP port of the same number stands for the claim,
 * also while nothing listens.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
    const claim = createSocket("udp4").bind({ address: "127.0.0.1", port, exclusive: true });
    if (!(await listens(claim))) continue;
    const probe = createServer().listen(port, "127.0.0.1");
    if (await listens(probe)) {
      await new Promise((resolve) => probe.close(resolve));
      claim.unref();
      return port;
    }
    claim.close();
  }
}

function listens(server: EventEmitter): Promise<boolean> {
  return once(server, "listening").then(
    () => true,
    () => false,
  );
}
