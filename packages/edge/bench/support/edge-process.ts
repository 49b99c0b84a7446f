// Started by the benchmark: one of both sides in a process of its own, so that its CPU time can be told apart. Arguments: `edge`
// or `plain`, the backend's origin, and a JSON text of certificate and key. Sends its port, then its CPU time in microseconds
// whenever it is asked.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createLogger } from "@cellkit/daemon";
import { type Dispatcher, Pool } from "undici";
import { type BackendOrigin, parseBackendOrigin } from "../../src/core/backend-origin.ts";
import { EdgeListener } from "../../src/edge-listener.ts";

const [kind = "edge", origin = "", pair = "{}"] = process.argv.slice(2);
const { cert, key } = JSON.parse(pair) as { cert: string; key: string };

async function startEdge(): Promise<number> {
  const listener = new EdgeListener({
    mode: "execution",
    backend: parseBackendOrigin(origin) as BackendOrigin,
    certificate: {
      ...{ cert: Buffer.from(cert), key: Buffer.from(key), clientCa: undefined },
      ...{ validFromMs: 0, validToMs: 0, names: undefined, fingerprint: "" },
    },
    log: createLogger({ name: "edge" }),
  });
  return (await listener.listen({ host: "127.0.0.1", port: 0 })).port;
}

/**
 * node:https and undici as their documentation puts them together: bodies stream both ways, nothing is looked at. A connection to
 * the backend for each request, as a router wants it, on both sides.
 */
async function startPlain(): Promise<number> {
  const pool = new Pool(origin, { connections: 32 });
  const server = createServer({ cert, key, minVersion: "TLSv1.3" }, (request, response) => {
    const { method = "GET", url: path = "/", headers } = request;
    const { connection: _, ...fields } = headers;
    const isPost = method === "POST";
    const options = {
      path,
      method: method as Dispatcher.HttpMethod,
      headers: fields,
      body: isPost ? request : null,
      reset: true,
    };
    pool
      .stream({ ...options, opaque: response }, ({ statusCode, headers: answered, opaque }) =>
        opaque.writeHead(statusCode, answered as Record<string, string>),
      )
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on("disconnect", () => process.exit());
process.send?.(await (kind === "edge" ? startEdge() : startPlain()));
