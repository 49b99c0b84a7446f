import type { Socket } from "node:net";

/**
 * Sends the last bytes and our FIN, then reads on and drops what comes: a socket that is closed with unread bytes sends
 * a reset, and a reset can take the last bytes away from a client that still uploads (RFC 9112 §9.6).
 * @param lingerMs how long after the FIN; a client that ends earlier is not waited for
 */
export function endAndLinger(client: Socket, lastBytes: Uint8Array | undefined, lingerMs: number): void {
  client.resume();
  client.once("finish", () => {
    const timer = setTimeout(() => client.destroy(), lingerMs);
    client.once("close", () => clearTimeout(timer));
  });
  if (lastBytes === undefined) client.end();
  else client.end(lastBytes);
}
