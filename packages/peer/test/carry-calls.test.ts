// Tunnels whose calls another server on this machine answers, at a unix socket.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { carryCalls } from "../src/carry-calls.ts";
import { socketPair } from "./support/socket-pair.ts";

const head = "GET http://cell/ HTTP/1.1\r\nhost: cell\r\n\r\n";
let directory: string;
let path: string;
let server: Server;
const connections = new Set<Socket>();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "carry-"));
  path = join(directory, "socket");
  server = createServer((request, response) => {
    if (request.method === "GET") response.end("answered");
  });
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  server.listen(path);
  await once(server, "listening");
});
afterEach(async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
  await rm(directory, { recursive: true });
});

/** A tunnel's two ends, and what comes back to the dialling one. */
async function tunnel() {
  const [dialler, owner] = await socketPair();
  const seen = { text: "", ended: false };
  dialler.on("data", (chunk: Buffer) => {
    seen.text += chunk.toString();
  });
  // Its own direction stays open: the owner's end of it is what counts.
  for (const event of ["end", "error"]) {
    dialler.on(event, () => {
      seen.ended = true;
    });
  }
  return { dialler, owner, seen };
}

it("carries calls, one after the other", async () => {
  const { dialler, owner, seen } = await tunnel();
  const heard = { sent: [] as Buffer[], answered: [] as Buffer[] };
  carryCalls(owner, path, {
    sent: (chunk) => void heard.sent.push(chunk),
    answered: (chunk) => void heard.answered.push(chunk),
  });
  for (const count of [1, 2]) {
    dialler.write(head);
    await until("answer", () => seen.text.split("answered").length === count + 1);
  }
  expect(Buffer.concat(heard.sent).toString()).toBe(head + head);
  expect(Buffer.concat(heard.answered).toString()).toBe(seen.text);
  dialler.destroy();
  await until("end", () => connections.size === 0 && owner.destroyed);
});

it.each(["no server", "a server that is gone"])(
  "answers the first call 503 when there is %s",
  async (what) => {
    const { dialler, owner, seen } = await tunnel();
    carryCalls(owner, what === "no server" ? undefined : `${path}-gone`);
    expect(seen.text).toBe("");
    dialler.write(head);
    await until("end", () => seen.ended);
    expect(seen.text).toMatch(/^HTTP\/1\.1 503 /);
    expect(seen.text).toContain("x-cells-peer-version: 5\r\n");
    expect(seen.text).toContain("cellkit-outcome: not-run\r\n");
    expect(seen.text).toMatch(/\r\n\r\nroute failed: NodeUnavailable$/);
  },
);

it("goes with a dialler that leaves before its first call", async () => {
  const { dialler, owner } = await tunnel();
  carryCalls(owner, undefined);
  dialler.end();
  await until("end", () => owner.destroyed);
});

it("a tunnel that breaks ends the server's connection, which knows no reset", async () => {
  const { dialler, owner, seen } = await tunnel();
  carryCalls(owner, path);
  dialler.write("POST http://cell/ HTTP/1.1\r\nhost: cell\r\ncontent-length: 10\r\n\r\n");
  await until("connection", () => connections.size === 1);
  owner.destroy(new TypeError("a record was changed on the way"));
  await until("end", () => connections.size === 0 && seen.ended);
});

it("a server that dies ends the tunnel", async () => {
  const { dialler, owner, seen } = await tunnel();
  carryCalls(owner, path);
  dialler.write("POST http://cell/ HTTP/1.1\r\nhost: cell\r\ncontent-length: 10\r\n\r\n");
  await until("connection", () => connections.size === 1);
  for (const socket of connections) socket.destroy();
  await until("end", () => seen.ended);
  expect(seen.text).toBe("");
});
