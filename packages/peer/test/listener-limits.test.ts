// What a listener gives to peers that hold the key, or a captured head: so many tunnels, so long, and nothing beyond.
import { expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { abortTarget } from "../src/abort-target.ts";
import { type RequestToSign, signRequest } from "../src/core/sign.ts";
import { RequestVerifier } from "../src/core/verifier.ts";
import { dialTunnel } from "../src/dial-tunnel.ts";
import { peerListener } from "../src/peer-listener.ts";
import { nonce } from "../src/random-ids.ts";
import { startNode, type TestNode } from "./support/node.ts";
import { rawClient } from "./support/raw-client.ts";
import { quiet, testKey } from "./support/records.ts";

function signed(change: Partial<RequestToSign>): string[] {
  const request = {
    key: testKey,
    version: 5,
    method: "GET",
    target: "/peer/tunnel",
    source: "caller",
    destination: "owner",
    timeMs: Date.now(),
    nonce: nonce(),
    ...change,
  } as const;
  return Object.entries(signRequest(request)).map(([name, value]) => `${name}: ${value}`);
}

function head(line: string, ...fields: string[]): string {
  return [`${line} HTTP/1.1`, "host: owner", ...fields, "", ""].join("\r\n");
}

const upgrade = ["upgrade: celld-tunnel", "connection: upgrade"];
const kind = ["x-cells-tunnel-version: 5", "x-cells-tunnel-kind: do"];

async function answerTo(node: TestNode, text: string): Promise<string> {
  const client = await rawClient(node.address.port);
  client.socket.write(text);
  return await client.all();
}

const dial = (node: TestNode, self = "caller") =>
  dialTunnel({ ...node, kind: "do", key: testKey, self, destination: "owner", records: "off" });

test("an establishment that does not upgrade, or in another method, or with a body, has its own refusal", async () => {
  const node = await startNode();
  const plain = head("GET /peer/tunnel", ...signed({}), ...kind);
  expect(await answerTo(node, plain)).toMatch(/^HTTP\/1.1 400 .*\r\n\r\ntunnel establishment must upgrade$/s);
  const post = head("POST /peer/tunnel", ...upgrade, ...signed({ method: "POST" }), ...kind);
  expect(await answerTo(node, post)).toMatch(/^HTTP\/1.1 405 .*\r\n\r\nmethod not allowed$/s);
  for (const body of ["content-length: 5", "transfer-encoding: chunked"]) {
    const withBody = head("GET /peer/tunnel", ...upgrade, ...signed({}), ...kind, body);
    expect(await answerTo(node, `${withBody}hello`)).toMatch(/^HTTP\/1.1 401 /);
  }
  expect(node.listener.counts().tunnels).toBe(0);
});

test("a cancellation signed for no body is refused before the body that it announces", async () => {
  const node = await startNode();
  const target = abortTarget("A:b", "1".repeat(32));
  for (const body of ["content-length: 60000", "transfer-encoding: chunked"]) {
    const text = head(`POST ${target}`, ...signed({ method: "POST", target }), body);
    expect(await answerTo(node, text)).toMatch(/^HTTP\/1.1 401 /);
  }
});

test("the body of a cancellation must come in time", async () => {
  const node = await startNode({ headTimeoutMs: 150 });
  const target = abortTarget("A:b", "1".repeat(32));
  const fields = signed({ method: "POST", target, body: Buffer.alloc(60_000) });
  const client = await rawClient(node.address.port);
  client.socket.write(head(`POST ${target}`, ...fields, "content-length: 60000"));
  const drip = setInterval(() => client.socket.write("x"), 20);
  const text = await client.all().finally(() => clearInterval(drip));
  expect(text).toBe("");
});

test("more tunnels than the bound are refused, and there is room again once one has ended", async () => {
  const node = await startNode({ maxTunnelCount: 2 });
  const first = quiet(await dial(node));
  const second = quiet(await dial(node));
  await expect(dial(node)).rejects.toMatchObject({ status: 503 });
  second.destroy();
  await until("end of one", () => node.listener.counts().tunnels === 1);
  quiet(await dial(node)).destroy();
  first.destroy();
});

test.each([
  ["without a call", ""],
  ["whose first head does not come to its end", "GET http://cell/ HTTP/1.1\r\nx-cells-scope: A:"],
  ["whose next head does not come to its end", "GET http://cell/ HTTP/1.1\r\nx-cells-scope: A:b\r\n\r\nGET "],
])("a tunnel %s is ended, dripping or not", async (_, text) => {
  const node = await startNode({ tunnelIdleMs: 200, onFetch: (__, response) => void response.end("x") });
  for (const drips of [false, true]) {
    const tunnel = quiet(await dial(node));
    tunnel.resume();
    if (text !== "") tunnel.write(text);
    const drip = setInterval(() => drips && text !== "" && tunnel.write("x"), 20);
    await until("end of the tunnel", () => tunnel.readableEnded || tunnel.destroyed);
    clearInterval(drip);
    tunnel.destroy();
    await until("nothing left", () => node.listener.counts().tunnels === 0);
  }
});

test("a call that takes longer than a tunnel may be idle goes on, and so does its WebSocket", async () => {
  const late = Promise.withResolvers<void>();
  const node = await startNode({
    tunnelIdleMs: 100,
    onFetch: (_, response) => void late.promise.then(() => response.end("late")),
    onConnect: (_, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      void late.promise.then(() => socket.write("later"));
    },
  });
  const call = await rawClient(node.address.port);
  const socket = await rawClient(node.address.port);
  const open = () => head("GET /peer/tunnel", ...upgrade, ...signed({}), ...kind);
  call.socket.write(`${open()}GET http://cell/ HTTP/1.1\r\nx-cells-scope: A:b\r\n\r\n`);
  const fields = "x-cells-scope: A:b\r\nupgrade: websocket\r\nconnection: upgrade\r\n";
  socket.socket.write(`${open()}GET http://cell/ HTTP/1.1\r\n${fields}\r\n`);
  await until("both", () => node.listener.counts().calls === 1 && node.listener.counts().sockets === 1);
  const idle = quiet(await dial(node)).resume();
  await until("end of a tunnel that is idle", () => idle.readableEnded || idle.destroyed);
  late.resolve();
  await call.receive("late");
  await socket.receive("later");
});

test("close() and destroy() end an establishment whose source is still being looked up", async () => {
  let asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<boolean>();
  const options = {
    onTunnel: () => expect.unreachable(),
    sourceHasRecords: () => {
      asked.resolve();
      return answer.promise;
    },
  };
  const node = await startNode(options);
  const destroyed = dial(node);
  destroyed.catch(() => undefined);
  await asked.promise;
  node.listener.destroy();
  await expect(destroyed).rejects.toThrow(/before an answer/);

  asked = Promise.withResolvers();
  const closing = await startNode(options);
  const refused = dial(closing);
  refused.catch(() => undefined);
  await asked.promise;
  await closing.listener.close();
  answer.resolve(false);
  await expect(refused).rejects.toMatchObject({ status: 503 });
});

test("what was signed before notBeforeMs is refused: a former process of the name may have taken it", async () => {
  const node = await startNode({ notBeforeMs: Date.now() });
  const text = head("GET /peer/tunnel", ...upgrade, ...signed({ timeMs: Date.now() - 5_000 }), ...kind);
  expect(await answerTo(node, text)).toMatch(/^HTTP\/1.1 401 /);
  quiet(await dial(node)).destroy();
});

test.each([
  [
    "notBeforeMs",
    { notBeforeMs: 1, verifier: new RequestVerifier({ keys: [testKey], self: "a", version: 5 }) },
  ],
  ["tunnelIdleMs", { tunnelIdleMs: 0 }],
  ["tunnelIdleMs", { tunnelIdleMs: Number.POSITIVE_INFINITY }],
  ["maxTunnelCount", { maxTunnelCount: 0 }],
  ["maxTunnelCount", { maxTunnelCount: Number.NaN }],
])("a listener cannot be made with a wrong %s", (option, change) => {
  expect(() => peerListener({ self: "owner", keys: [testKey], ...change })).toThrow(
    expect.objectContaining({ code: "CELLKIT_PEER_OPTION", option }),
  );
});
