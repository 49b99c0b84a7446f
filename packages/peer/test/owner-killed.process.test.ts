// An owner that is killed: what a caller sees, and that nothing runs twice.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { dialTunnel } from "../src/dial-tunnel.ts";
import { webSocketAccept } from "../src/handshake.ts";
import { PeerClient } from "../src/peer-client.ts";
import { cell, enter } from "./support/fleet.ts";
import { MemoryStore } from "./support/memory-store.ts";
import { testKey } from "./support/records.ts";

const script = fileURLToPath(new URL("support/owner-process.ts", import.meta.url));

/** Starts an owner, and a client that finds it. */
async function start() {
  const child: ChildProcess = fork(script, { execArgv: ["--conditions=@cellkit/source"] });
  const ran: string[] = [];
  const [port] = await once(child, "message");
  child.on("message", (line) => ran.push(String(line)));
  const address = { host: "127.0.0.1", port: Number(port) };
  const store = new MemoryStore();
  enter(store, "owner", address);
  const client = new PeerClient({ store, key: testKey, self: "caller", script: "app" });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await client.close();
  });
  return { child, ran, client, address };
}

test("an owner killed within a body is an error of the read, and there is no second run", async () => {
  const { child, ran, client } = await start();
  const response = await client.fetch(cell, "http://cell/body");
  const reader = response.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("half");
  child.kill("SIGKILL");
  await expect(reader?.read()).rejects.toBeInstanceOf(Error);
  // What it told comes another way than its answer.
  await until("run", () => ran.length > 0);
  expect(ran).toEqual(["ran http://cell/body"]);
});

test.each(["GET", "POST"])("an owner killed before its answer to a %s is not asked again", async (method) => {
  const { child, ran, client } = await start();
  const waiting = client.fetch(cell, "http://cell/silent", { method });
  await until("run", () => ran.length === 1);
  child.kill("SIGKILL");
  await expect(waiting).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_UNREACHABLE",
  });
  expect(ran).toHaveLength(1);
});

test("an owner killed with an open WebSocket is exactly one close frame, 1012", async () => {
  const { child, client } = await start();
  const key = "dGhlIHNhbXBsZSBub25jZQ==";
  const headers = { "sec-websocket-key": key, "x-accept": webSocketAccept(key) };
  const answer = await client.connect(cell, "http://cell/", { headers });
  if (answer.kind !== "socket") throw new Error("no socket");
  const received: Buffer[] = [];
  answer.socket.on("data", (chunk: Buffer) => received.push(chunk));
  await until("frame", () => received.length > 0);
  child.kill("SIGKILL");
  await once(answer.socket, "end");
  const close = Buffer.concat([Buffer.of(0x88, 19, 0x03, 0xf4), Buffer.from("owner unavailable")]);
  expect(Buffer.concat(received)).toEqual(Buffer.concat([Buffer.of(0x81, 1, 0x78), close]));
});

test("an owner killed with a raw tunnel is an error of the read, never an end", async () => {
  const { child, address } = await start();
  const tunnel = await dialTunnel({
    address,
    kind: "cluster",
    key: testKey,
    self: "caller",
    destination: "owner",
  });
  await once(tunnel, "data");
  child.kill("SIGKILL");
  const [error] = await once(tunnel, "error");
  expect(error).toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
});
