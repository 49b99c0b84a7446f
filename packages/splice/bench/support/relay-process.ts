// Started by the benchmark: one relay before a unix socket, in a process of its own so that its CPU time can be told.
// Arguments: `splice` or `pipe`, the socket's path. Sends its port, then its CPU time in microseconds when asked.
import { connect, createServer, type Socket } from "node:net";
import { createSpliceServer } from "../../src/server.ts";

const [kind, path = ""] = process.argv.slice(2);

/** What Node does when it looks at no byte. */
function pipeBoth(client: Socket): void {
  const upstream = connect({ path, allowHalfOpen: true });
  client.pipe(upstream);
  upstream.pipe(client);
  client.on("error", () => upstream.destroy());
  upstream.on("error", () => client.destroy());
}

async function listen(): Promise<number> {
  if (kind === "splice") {
    const server = createSpliceServer(() => path, {
      local: ({ target }) => (target === "/health" ? { status: 200 } : undefined),
      clientHeader: { name: "X-Client-Json", value: ({ address }) => ({ clientIp: address }) },
    });
    return (await server.listen("127.0.0.1", 0)).port;
  }
  const server = createServer({ noDelay: true, allowHalfOpen: true }, pipeBoth);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on("disconnect", () => process.exit());
process.send?.(await listen());
