// A balancer of connections, as a Service of Kubernetes is one: each goes to the next of its targets.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pipeline } from "node:stream";

/** @param targets origins, `http://127.0.0.1:PORT` */
export async function startBalancer(
  targets: readonly string[],
): Promise<AsyncDisposable & { origin: string }> {
  let next = 0;
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    const target = new URL(targets[next++ % targets.length] ?? "");
    const called = connect({ host: target.hostname, port: Number(target.port), allowHalfOpen: true });
    for (const socket of [caller, called]) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    }
    pipeline(caller, called, () => undefined);
    pipeline(called, caller, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
