import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** A loopback port that is taken, and on which nobody listens but whom the test tells to. */
export interface ClosedPort extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
}

/**
 * A connection that was bound to the port holds it: the system gives it to nobody else, neither to a server nor to a
 * connection, and a server that names it may listen there all the same.
 */
export async function closedPort(): Promise<ClosedPort> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const far = (server.address() as AddressInfo).port;
  const holder = connect({ port: far, host: "127.0.0.1", localAddress: "127.0.0.1" });
  await Promise.all([once(holder, "connect"), accepted]);
  const port = holder.localPort ?? 0;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const [near] = await accepted;
      holder.destroy();
      near.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
