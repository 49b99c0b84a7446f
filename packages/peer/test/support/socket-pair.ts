import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Two ends of one TCP connection on the loopback, both half-open; cut when the test ends. */
export async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const dialled = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const [[accepted]] = await Promise.all([once(server, "connection"), once(dialled, "connect")]);
  server.close();
  onTestFinished(() => {
    dialled.destroy();
    (accepted as Socket).destroy();
  });
  return [dialled, accepted as Socket];
}
