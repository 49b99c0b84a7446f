import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { StaleOwnerError } from "../src/errors.ts";
import { webSocketAccept } from "../src/handshake.ts";
import { NodeDirectory } from "../src/node-directory.ts";
import type { PeerCall } from "../src/peer-call.ts";
import { PeerClient } from "../src/peer-client.ts";
import { cell, enter, startFleet } from "./support/fleet.ts";
import { MemoryStore } from "./support/memory-store.ts";
import { nobodysAddress } from "./support/nobody.ts";
import { testKey } from "./support/records.ts";

test("a call reaches the handler as the application made it", async () => {
  const seen: { request: IncomingMessage; call: PeerCall }[] = [];
  const { client } = await startFleet([
    {
      onFetch: (request, response, call) => {
        seen.push({ request, call });
        response.writeHead(201, { "x-own": "yes" }).end(`hello ${request.url}`);
      },
    },
  ]);
  const response = await client.fetch(cell, "http://app.example/path?q=1#part", {
    headers: { "x-mine": "1", "x-cells-scope": "forged", "x-celld-thing": "forged" },
  });
  expect(response.status).toBe(201);
  expect(await response.text()).toBe("hello http://app.example/path?q=1");
  expect(response.headers.get("x-own")).toBe("yes");
  expect([...response.headers.keys()].filter((name) => name.startsWith("x-cell"))).toEqual([]);
  const [{ request, call } = { request: undefined, call: undefined }] = seen;
  expect(request?.headers).toMatchObject({ host: "app.example", "x-mine": "1" });
  expect(request?.rawHeaders.join("\n")).not.toMatch(/x-cell/);
  expect(Object.keys(request?.headersDistinct ?? {})).toEqual(Object.keys(request?.headers ?? {}));
  expect(call).toMatchObject({ name: "a", source: "caller", recorded: true, capacityHandoff: false });
  expect(call?.scope).toMatch(/^Counter:[0-9a-f]{64}$/);
  expect(call?.requestId).toMatch(/^[0-9a-f]{16}0{15}1$/);
});

test("bodies stream both ways at the same time, and arrive whole", async () => {
  const { client } = await startFleet([{ onFetch: (request, response) => void request.pipe(response) }]);
  const sent = randomBytes(5_000_000);
  const pieces = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < sent.length; at += 100_000) controller.enqueue(sent.subarray(at, at + 100_000));
      controller.close();
    },
  });
  const response = await client.fetch(cell, "http://cell/", { method: "POST", body: pieces, duplex: "half" });
  expect(Buffer.from(await response.arrayBuffer()).equals(sent)).toBe(true);
});

test("calls one after the other share a tunnel, calls at the same time have one each", async () => {
  const { client, nodes } = await startFleet([{ onFetch: (_, response) => void response.end("x") }]);
  for (let i = 0; i < 5; i += 1) await (await client.fetch(cell, "http://cell/")).text();
  // A tunnel is free a moment after its body ended.
  expect(client.counts().tunnels).toBeLessThanOrEqual(2);
  await Promise.all(Array.from({ length: 8 }, async () => (await client.fetch(cell, "http://cell/")).text()));
  await until("idle tunnels", () => client.counts().idle === client.counts().tunnels);
  const { tunnels } = client.counts();
  expect(tunnels).toBeGreaterThanOrEqual(8);
  expect(tunnels).toBeLessThanOrEqual(10);
  await until("end of the calls", () => nodes[0]?.listener.counts().calls === 0);
  expect(nodes[0]?.listener.counts().tunnels).toBe(tunnels);
});

test("no more idle tunnels are kept than asked for", async () => {
  const { client } = await startFleet([{ onFetch: (_, response) => void response.end("x") }], {
    idleCount: 2,
  });
  await Promise.all(Array.from({ length: 6 }, async () => (await client.fetch(cell, "http://cell/")).text()));
  await until("two tunnels", () => client.counts().tunnels === 2);
  expect(client.counts().idle).toBe(2);
});

test("an application cannot speak for the node: its reserved headers are dropped, in every form", async () => {
  let runs = 0;
  const forged = { "X-Cells-Route-Error": "stale-owner", "x-celld-ws-target": "{}", "x-kept": "1" };
  const { client } = await startFleet([
    {
      onFetch: (request, response) => {
        runs += 1;
        const form = new URL(request.url ?? "").pathname;
        if (form === "/object") response.writeHead(409, forged);
        else if (form === "/array") response.writeHead(409, "Conflict", Object.entries(forged).flat());
        else {
          response.statusCode = 409;
          for (const [name, value] of Object.entries(forged)) response.setHeader(name, value);
        }
        response.end("mine");
      },
    },
  ]);
  for (const form of ["object", "array", "set"]) {
    const response = await client.fetch(cell, `http://cell/${form}`);
    expect([response.status, await response.text()]).toEqual([409, "mine"]);
    expect(response.headers.get("x-kept")).toBe("1");
    expect(response.headers.get("x-celld-ws-target")).toBeNull();
  }
  expect(runs).toBe(3);
});

test("a stale answer ran nothing, so another node is asked; the stale marker counts with 409 only", async () => {
  let served = 0;
  const { client } = await startFleet([
    { onFetch: (_, __, call) => call.answerStale() },
    {
      onFetch: (_, response) => {
        served += 1;
        response.end("mine");
      },
    },
  ]);
  for (let i = 0; i < 4; i += 1) expect(await (await client.fetch(cell, "http://cell/")).text()).toBe("mine");
  expect(served).toBe(4);
});

test("an owner that lets its application set the stale marker on a 200 gets no second call", async () => {
  let runs = 0;
  const careless = createServer((_, response) => {
    runs += 1;
    response.writeHead(200, { "x-cells-peer-version": "5", "x-cells-route-error": "stale-owner" }).end("ran");
  });
  const { client } = await startFleet([{ onTunnel: (tunnel) => void careless.emit("connection", tunnel) }]);
  const response = await client.fetch(cell, "http://cell/");
  expect([await response.text(), response.headers.get("x-cells-route-error")]).toEqual(["ran", null]);
  expect(runs).toBe(1);
});

test("an answer inside a tunnel without the protocol's version is no answer", async () => {
  const stranger = createServer((_, response) => void response.end("hello"));
  const { client } = await startFleet([{ onTunnel: (tunnel) => void stranger.emit("connection", tunnel) }]);
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({ code: "CELLKIT_PEER_VERSION" });
});

test("when every node says that it is not the owner, the call ends with that at its deadline", async () => {
  let hasRoom = true;
  const node = {
    onFetch: (_: unknown, response: ServerResponse, call: PeerCall) =>
      hasRoom ? void response.end() : call.answerNoRoom(),
  };
  const { client } = await startFleet([node, node], { deadlineMs: 60 });
  // The tunnels are there before: to dial them takes longer than the deadline on a machine that has no time for us.
  for (const idleCount of [1, 2]) {
    await (await client.fetch(cell, "http://cell/")).text();
    await until("an idle tunnel", () => client.counts().idle === idleCount);
  }
  hasRoom = false;
  await expect(client.fetch(cell, "http://cell/")).rejects.toBeInstanceOf(StaleOwnerError);
});

test("a handler that throws is a 500, and the caller does not get to know what it threw", async () => {
  const thrown: unknown[] = [];
  const { client } = await startFleet([
    {
      onFetch: (request) => {
        if (request.url?.endsWith("/sync")) throw new TypeError("secret");
        return Promise.reject(new TypeError("secret"));
      },
      onError: (error) => void thrown.push(error),
    },
  ]);
  for (const path of ["sync", "async"]) {
    const response = await client.fetch(cell, `http://cell/${path}`);
    expect([response.status, await response.text()]).toEqual([500, "cell Worker failed"]);
  }
  expect(thrown).toHaveLength(2);
});

test("a request whose body is over the bound gets 413, declared or not", async () => {
  let bytes = 0;
  const { client } = await startFleet([
    {
      maxBodyBytes: 1000,
      onFetch: async (request, response) => {
        bytes = (await buffer(request)).length;
        response.end("ok");
      },
    },
  ]);
  const post = async (sizeBytes: number, chunked: boolean) => {
    const body = new Uint8Array(sizeBytes);
    const headers: Record<string, string> = chunked ? {} : { "content-length": String(sizeBytes) };
    const response = await client.fetch(cell, "http://cell/", { method: "POST", body, headers });
    return [response.status, await response.text()];
  };
  expect(await post(1000, true)).toEqual([200, "ok"]);
  expect(await post(1000, false)).toEqual([200, "ok"]);
  expect(bytes).toBe(1000);
  expect(await post(1001, true)).toEqual([413, "request body too large"]);
  expect(await post(1001, false)).toEqual([413, "request body too large"]);
});

test("a caller that gives up cancels the call, before and after the answer's head", async () => {
  const aborted: string[] = [];
  const cancelled: string[] = [];
  const { client, nodes } = await startFleet([
    {
      onFetch: (request, response, call) => {
        const path = new URL(request.url ?? "").pathname;
        call.signal.addEventListener("abort", () => aborted.push(path));
        if (path === "/body") response.write("begun");
      },
    },
  ]);
  nodes[0]?.server.on("request", ({ method, url }) => cancelled.push(`${method} ${url}`));
  const controller = new AbortController();
  const waiting = client.fetch(cell, "http://cell/head", { signal: controller.signal });
  await until("the call", () => nodes[0]?.listener.counts().calls === 1);
  controller.abort();
  await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  await until("first abort", () => aborted.includes("/head"));
  const response = await client.fetch(cell, "http://cell/body");
  await response.body?.cancel();
  await until("second abort", () => aborted.includes("/body"));
  await until("both cancellations", () => cancelled.length === 2);
  for (const line of cancelled)
    expect(line).toMatch(/^POST \/peer\/abort\/Counter%3A[0-9a-f]{64}\/[0-9a-f]{32}$/);
  await (await client.fetch(cell, "http://cell/body")).body?.cancel();
  await until("one more", () => cancelled.length === 3);
});

test("an owner lost within a body is an error of the read, and there is no second run", async () => {
  let runs = 0;
  const { client, nodes } = await startFleet([
    {
      onFetch: (_, response) => {
        runs += 1;
        response.write("half");
      },
    },
  ]);
  const response = await client.fetch(cell, "http://cell/");
  const reader = response.body?.getReader();
  await reader?.read();
  nodes[0]?.kill();
  await expect(reader?.read()).rejects.toBeInstanceOf(Error);
  expect(runs).toBe(1);
});

test("an owner lost before its answer is not asked again, nor is another", async () => {
  let runs = 0;
  const cut = {
    onFetch: (request: IncomingMessage) => {
      runs += 1;
      request.socket.destroy();
    },
  };
  const { client } = await startFleet([cut, cut]);
  for (const method of ["GET", "POST"]) {
    runs = 0;
    await expect(client.fetch(cell, "http://cell/", { method })).rejects.toMatchObject({
      code: "CELLKIT_PEER_TUNNEL_LOST",
    });
    expect(runs).toBe(1);
  }
});

test("a node that cannot be reached is passed over once", async () => {
  const { client, store, nodes } = await startFleet([{ onFetch: (_, response) => void response.end("up") }]);
  const [node] = nodes;
  enter(store, "dead", nobodysAddress);
  for (let i = 0; i < 4; i += 1) expect(await (await client.fetch(cell, "http://cell/")).text()).toBe("up");
  node?.kill();
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_UNREACHABLE",
  });
});

test("an idle tunnel whose owner was restarted is not used: the next call gets a tunnel of its own", async () => {
  const store = new MemoryStore();
  const { client, nodes } = await startFleet([{ onFetch: (_, response) => void response.end("first") }], {
    store,
    directory: new NodeDirectory(store, { cacheMs: 0 }),
  });
  enter(store, "owner", nodes[0]?.address ?? nobodysAddress);
  await (await client.fetch(cell, "http://cell/")).text();
  await until("an idle tunnel", () => client.counts().idle === 1);
  nodes[0]?.listener.destroy();
  const next = await startFleet([{ onFetch: (_, response) => void response.end("second") }]);
  enter(store, "owner", next.nodes[0]?.address ?? { host: "", port: 0 });
  await until("no tunnel", () => client.counts().tunnels === 0);
  expect(await (await client.fetch(cell, "http://cell/", { method: "POST", body: "x" })).text()).toBe(
    "second",
  );
});

test("a call to a node whose record lapsed fails within two seconds, and so does a body", async () => {
  const { client, store, nodes } = await startFleet(
    [{ onFetch: (request, response) => void (request.url?.endsWith("/body") && response.write("begun")) }],
    { lapseCheckMs: 20 },
  );
  const body = await client.fetch(cell, "http://cell/body");
  const waiting = client.fetch(cell, "http://cell/");
  await until("both calls", () => nodes[0]?.listener.counts().calls === 2);
  enter(store, "owner", nodes[0]?.address ?? { host: "", port: 0 }, Date.now() - 1);
  await expect(waiting).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
  await expect(body.text()).rejects.toBeInstanceOf(Error);
});

test("records of dead nodes, however many, do not keep a lapsed node from being cut, nor cut a live one", async () => {
  const store = new MemoryStore();
  const directory = new NodeDirectory(store, { maxRecordsCount: 2, cacheMs: 0 });
  const { client, nodes } = await startFleet(
    [{ onFetch: (request, response) => void (request.url?.endsWith("/now") && response.end("x")) }],
    { store, directory, lapseCheckMs: 20 },
  );
  const address = nodes[0]?.address ?? { host: "", port: 0 };
  enter(store, "owner", address);
  await (await client.fetch(cell, "http://cell/now")).text();
  const waiting = client.fetch(cell, "http://cell/");
  await until("the call", () => nodes[0]?.listener.counts().calls === 1);
  for (const dead of ["dead-1", "dead-2", "dead-3"]) enter(store, dead, address, 1);
  const reads = () => store.calls.filter((call) => call === "get nodes/owner.json").length;
  const before = reads();
  await until("looks at the record itself", () => reads() > before + 3);
  expect(nodes[0]?.listener.counts().calls).toBe(1);
  enter(store, "owner", address, 1);
  for (const dead of ["dead-1", "dead-2", "dead-3"]) enter(store, dead, address, 2);
  await expect(waiting).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
});

test("RPC carries JSON both ways, and tells what a method chose to tell", async () => {
  const { RpcFailure } = await import("../src/errors.ts");
  const { client } = await startFleet([
    {
      onRpc: async (method, args, call) => {
        if (method === "fail") throw new RpcFailure("no such thing");
        if (method === "throw") throw new TypeError("secret");
        return { method, args, name: call.name };
      },
    },
  ]);
  const answer = await client.rpc(cell, { method: "add", args: [1, "é", null] });
  expect(answer).toEqual({ method: "add", args: [1, "é", null], name: "a" });
  await expect(client.rpc(cell, { method: "fail" })).rejects.toThrow("no such thing");
  await expect(client.rpc(cell, { method: "throw" })).rejects.toThrow(/^the method threw$/);
});

test("the script is the one that the fleet runs, and its absence is told", async () => {
  const { store } = await startFleet([{ onFetch: (_, response, call) => void response.end(call.scope) }]);
  const client = new PeerClient({ store, key: testKey, self: "caller" });
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({ code: "CELLKIT_PEER_NO_SCRIPT" });
  store.put(
    "deploy/current.json",
    '{"script_name":"app","version":"1","prefix":"p","rollout":{"percent":100}}',
  );
  const named = await (await client.fetch(cell, "http://cell/")).text();
  const id = named.slice("Counter:".length);
  const byId = await client.fetch({ className: "Counter", id }, "http://cell/");
  expect(await byId.text()).toBe(named);
  await expect(client.fetch({ className: "Other", id }, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_SCOPE",
  });
  await client.close();
  await expect(
    new PeerClient({ store: new MemoryStore(), key: testKey, self: "c", script: "app" }).fetch(
      cell,
      "http://cell/",
    ),
  ).rejects.toMatchObject({ code: "CELLKIT_PEER_NO_LIVE_NODE" });
});

test("a closing listener lets a call be answered, and then has no tunnel left", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { client, nodes } = await startFleet([
    {
      onFetch: async (_, response) => {
        await promise;
        response.end("late");
      },
    },
  ]);
  const waiting = client.fetch(cell, "http://cell/");
  const [node] = nodes;
  await until("call", () => node?.listener.counts().calls === 1);
  const closed = node?.listener.close();
  resolve();
  expect(await (await waiting).text()).toBe("late");
  await closed;
  expect(node?.listener.counts()).toMatchObject({ tunnels: 0, calls: 0 });
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({ status: 503 });
});

test("a handshake is carried through whole, and the accepted socket's bytes pass raw", async () => {
  const { client } = await startFleet([
    {
      onConnect: (request, socket, _head, call) => {
        expect(request.headers["x-cells-scope"]).toBeUndefined();
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptFor(request)}\r\n` +
            `Sec-WebSocket-Protocol: chat\r\nX-Cells-Route-Error: stale-owner\r\nX-Name: ${call.name}\r\n\r\n`,
        );
        socket.pipe(socket);
      },
    },
  ]);
  const answer = await client.connect(cell, "http://cell/ws", {
    headers: { "sec-websocket-protocol": "chat" },
  });
  if (answer.kind !== "socket") throw new Error("no socket");
  expect(answer.headers.get("sec-websocket-protocol")).toBe("chat");
  expect(answer.headers.get("x-name")).toBe("a");
  expect(answer.headers.get("x-cells-route-error")).toBeNull();
  answer.socket.write("raw");
  expect(String((await once(answer.socket, "data"))[0])).toBe("raw");
  expect(client.counts().sockets).toBe(1);
  answer.socket.destroy();
});

function acceptFor(request: IncomingMessage): string {
  return webSocketAccept(request.headers["sec-websocket-key"] ?? "");
}
