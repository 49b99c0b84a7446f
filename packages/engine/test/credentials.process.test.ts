// workerd knows neither profiles nor roles: it is given what the node finds there, and again when that changes.
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { startFleet, type TestFleet } from "./support/fleet.ts";
import { ask } from "./support/http.ts";
import { rooms } from "./support/workers.ts";

let fleet: TestFleet;

beforeEach(async () => {
  fleet = await startFleet();
  await fleet.deploy({ source: rooms, classes: ["Room"] });
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
});

it("temporary credentials are renewed under a running workerd", async () => {
  await using store = await tokenProxy(fleet.endpoint);
  let sessionToken = "first";
  const source = async () => {
    if (sessionToken === "") throw new TypeError("the role cannot be assumed just now");
    return { ...fleet.credentials, sessionToken };
  };
  const node = await fleet.node({
    endpoint: store.endpoint,
    credentials: source,
    credentialsPollMs: 50,
  });
  const { pid } = await node.engine.snapshot();
  expect(store.tokens).toEqual(new Set(["first"]));
  sessionToken = "";
  await until("a renewal that failed", () =>
    node.log.some(({ message }) => message.includes("could not be renewed")),
  );
  sessionToken = "second";
  let written = 0;
  await until("a request with the new token", async () => {
    // Another cell each time: it is looked for in the bucket.
    const { status } = await ask(node.engine, `/cell-${written}/write`, { method: "POST" });
    written += 1;
    expect(status).toBe(200);
    return store.tokens.has("second");
  });
  expect((await node.engine.snapshot()).pid).toBe(pid);
  expect(JSON.stringify(node.log)).not.toContain(fleet.credentials.secretAccessKey);
});

it("credentials that cannot be had stop the start", async () => {
  const source = () => Promise.reject(new TypeError("no role here"));
  const { engine } = await fleet.node({ start: false, credentials: source });
  await expect(engine.start()).rejects.toThrow("no role here");
});

/** A proxy that keeps the session tokens of what passes. */
async function tokenProxy(
  endpoint: string,
): Promise<AsyncDisposable & { endpoint: string; tokens: ReadonlySet<string | undefined> }> {
  const { hostname, port } = new URL(endpoint);
  const tokens = new Set<string | undefined>();
  const server = createServer((message, answer) => {
    const { method, url: path, headers } = message;
    tokens.add(String(headers["x-amz-security-token"]));
    const sent = request({ host: hostname, port, method, path, headers, agent: false }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.rawHeaders);
      response.pipe(answer);
    });
    sent.once("error", () => answer.destroy());
    message.pipe(sent);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokens,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
