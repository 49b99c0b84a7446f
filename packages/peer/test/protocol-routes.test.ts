// The paths of the protocol on a server of node:http, over real connections.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import type { PeerVersion } from "../src/core/constants.ts";
import { protocolPaths } from "../src/core/protocol-paths.ts";
import { type RequestToSign, signRequest } from "../src/core/sign.ts";
import { RequestVerifier } from "../src/core/verifier.ts";
import { type PeerListener, peerListener } from "../src/peer-listener.ts";
import { createProbeKey } from "../src/probe-key.ts";
import { protocolRoutes } from "../src/protocol-routes.ts";
import { testKey } from "./support/records.ts";

const challenge = "ab".repeat(32);
let listener: PeerListener | undefined;
let port: number;

beforeEach(async () => {
  listener = peerListener({ self: "owner", keys: [testKey] });
  const older = new RequestVerifier({ self: "owner", keys: [testKey], version: 2 });
  const { privateKey } = createProbeKey();
  const routes = protocolRoutes({
    listener: () => listener,
    olderVerifier: () => (listener === undefined ? undefined : older),
    identity: () => ({ node: "owner", advertise: "127.0.0.1:1", privateKey }),
  });
  const server = createServer((request, response) => {
    if (!routes.request(request, response)) response.end("own");
  });
  server.on("upgrade", routes.upgrade);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  return () => {
    listener?.destroy();
    server.close();
    server.closeAllConnections();
  };
});

interface Ask {
  method?: string;
  /** Signed by this version; unsigned without. */
  version?: PeerVersion;
  signed?: Partial<RequestToSign>;
  headers?: Record<string, string>;
}

async function ask(path: string, { method = "GET", version, signed, headers }: Ask = {}) {
  const signature =
    version === undefined
      ? {}
      : signRequest({
          key: testKey,
          version,
          method,
          target: path,
          source: "tester",
          destination: "owner",
          timeMs: Date.now(),
          nonce: randomBytes(16).toString("hex"),
          ...signed,
        });
  const asked = request({
    port,
    host: "127.0.0.1",
    path,
    method,
    agent: false,
    headers: { ...signature, ...headers },
  });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer) text += chunk;
  return {
    status: answer.statusCode,
    version: answer.headers["x-cells-peer-version"],
    date: answer.headers.date,
    text,
  };
}

const pathOf = (path: string) => path.replace("*", "Room:1");
const upgrade = { connection: "upgrade", upgrade: "websocket" };

describe.each(protocolPaths.filter(({ use }) => use === "refused"))(
  "$path, which is not served",
  ({ path }) => {
    it("is 426 for a call of generation 2, also as an upgrade", async () => {
      for (const headers of [{}, upgrade]) {
        expect(await ask(pathOf(path), { method: "POST", version: 2, headers })).toMatchObject({
          status: 426,
          version: "5",
          text: "peer protocol version is incompatible",
          date: expect.any(String),
        });
      }
    });

    it("is 404 for a call of generation 5, and for one that is not signed", async () => {
      for (const given of [
        { version: 5 as const },
        {},
        { version: 5 as const, headers: upgrade },
        { headers: upgrade },
      ]) {
        expect(await ask(pathOf(path), given)).toMatchObject({
          status: 404,
          version: "5",
          text: '{"error":"not_found"}',
        });
      }
    });
  },
);

describe("probes", () => {
  const headers = { "x-cells-probe-challenge": challenge };

  it.each([
    ["/peer/probe", 5],
    ["/__celld/probe", 2],
  ] as const)("%s is answered to generation %i, and 426 to the other", async (path, version) => {
    const answer = await ask(path, { version, headers });
    expect(answer).toMatchObject({ status: 200, version: String(version) });
    expect(JSON.parse(answer.text)).toMatchObject({ version: 1, node: "owner", challenge });
    const other = await ask(path, { version: version === 5 ? 2 : 5, headers });
    expect(other).toMatchObject({ status: 426, version: String(version) });
  });

  it("one that is not signed is 401", async () => {
    expect(await ask("/peer/probe", { headers })).toMatchObject({ status: 401, version: "5" });
  });

  it("one that is sent again is refused", async () => {
    const signed = { nonce: "1".repeat(32) };
    expect((await ask("/peer/probe", { version: 5, headers, signed })).status).toBe(200);
    expect((await ask("/peer/probe", { version: 5, headers, signed })).status).toBe(409);
  });
});

it("a cancellation is taken, and refused when it is not signed", async () => {
  const path = `/peer/abort/Room%3A1/${"0".repeat(32)}`;
  expect(await ask(path, { method: "POST", version: 5 })).toMatchObject({ status: 204, version: "5" });
  expect(await ask(path, { method: "POST" })).toMatchObject({ status: 401, version: "5" });
});

it("a tunnel is opened by an upgrade only", async () => {
  expect(await ask("/peer/tunnel", { version: 5 })).toMatchObject({
    status: 400,
    version: "5",
    text: "tunnel establishment must upgrade",
  });
  expect(await ask("/peer/tunnel", { headers: { ...upgrade, upgrade: "celld-tunnel" } })).toMatchObject({
    status: 401,
    version: "5",
  });
});

it("leaves other requests to the server's own routes, and refuses other upgrades", async () => {
  expect(await ask("/state")).toMatchObject({ status: 200, text: "own" });
  expect(await ask("/state", { headers: upgrade })).toMatchObject({ status: 404, version: "5" });
});

it("answers 503 on what it serves until the node has its key, and refuses the rest as ever", async () => {
  listener?.destroy();
  listener = undefined;
  for (const path of ["/peer/probe", "/__celld/probe", "/peer/abort/x/1"])
    expect(await ask(path, { version: 5 })).toMatchObject({ status: 503, version: "5" });
  expect((await ask("/peer/tunnel", { headers: { ...upgrade, upgrade: "celld-tunnel" } })).status).toBe(503);
  expect((await ask("/__do/x", { version: 2 })).status).toBe(426);
});
