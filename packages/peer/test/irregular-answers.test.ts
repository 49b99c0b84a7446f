import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { IrregularAnswerError } from "../src/errors.ts";
import type { PeerCall } from "../src/peer-call.ts";
import { cell, startFleet } from "./support/fleet.ts";
import { establishedTunnel } from "./support/raw-tunnel.ts";

type OnFetch = (request: IncomingMessage, response: ServerResponse, call: PeerCall) => void | Promise<void>;

const forgedAnswer = "HTTP/1.1 200 OK\r\nx-cells-peer-version: 5\r\ncontent-length: 6\r\n\r\nforged";

/** A fleet of one node whose handler for `/odd` is the test's; other paths answer `own`. */
async function fleetWith(odd: OnFetch) {
  const errors: unknown[] = [];
  const runs: string[] = [];
  const { client, nodes } = await startFleet([
    {
      onError: (error) => void errors.push(error),
      onFetch: (request, response, call) => {
        const path = new URL(request.url ?? "").pathname;
        runs.push(path);
        if (path === "/odd") return odd(request, response, call);
        response.end("own");
      },
    },
  ]);
  const get = async (path: string, method = "GET") => {
    const response = await client.fetch(cell, `http://cell${path}`, { method });
    return [response.status, await response.text()] as const;
  };
  return { get, errors, runs, client, node: nodes[0] };
}

test("bytes behind the end of an answer do not reach the next call in its tunnel", async () => {
  const written = Promise.withResolvers<void>();
  const { get, errors, runs } = await fleetWith(async (_, response) => {
    response.writeHead(200, { "content-length": "5" });
    response.write("hello");
    await written.promise;
    response.end(forgedAnswer);
  });
  expect(await get("/odd")).toEqual([200, "hello"]);
  const next = get("/next");
  written.resolve();
  expect(await next).toEqual([200, "own"]);
  expect(await get("/last")).toEqual([200, "own"]);
  expect(runs).toEqual(["/odd", "/next", "/last"]);
  await until("the report", () => errors.length === 1);
  expect(errors[0]).toBeInstanceOf(IrregularAnswerError);
});

test.each<[string, OnFetch]>([
  [
    "too many bytes at once",
    (_, response) => void response.writeHead(200, { "content-length": 5 }).end(`hello${forgedAnswer}`),
  ],
  [
    "too many bytes after some",
    (_, response) => {
      response.setHeader("Content-Length", "5");
      response.write("hel");
      response.write(`lo${forgedAnswer}`);
    },
  ],
  ["too few bytes", (_, response) => void response.writeHead(200, ["Content-Length", "9"]).end("hello")],
  ["no bytes", (_, response) => void response.writeHead(200, { "content-length": 9 }).end()],
])("an answer that has %s cuts its tunnel, and the next call gets its own answer", async (_, odd) => {
  const { get, errors } = await fleetWith(odd);
  await expect(get("/odd")).rejects.toBeInstanceOf(Error);
  expect(errors[0]).toBeInstanceOf(IrregularAnswerError);
  expect(await get("/next")).toEqual([200, "own"]);
});

test.each<[string, OnFetch]>([
  ["status 102", (_, response) => void response.writeHead(102).end()],
  ["status 101", (_, response) => void response.writeHead(101).end("x")],
  ["status 999", (_, response) => void response.writeHead(999).end("x".repeat(100_000))],
  [
    "status 600, set",
    (_, response) => {
      response.statusCode = 600;
      response.end("x");
    },
  ],
  [
    "status 600, flushed",
    (_, response) => {
      response.statusCode = 600;
      response.flushHeaders();
      response.write("x");
      response.end();
    },
  ],
  [
    "a length that is none",
    (_, response) => void response.writeHead(200, { "content-length": "5, 6" }).end("hello"),
  ],
  [
    "two lengths",
    (_, response) =>
      void response.writeHead(200, ["content-length", "5", "content-length", "6"]).end("hello"),
  ],
])("an answer with %s is a 500", async (_, odd) => {
  const { get, errors } = await fleetWith(odd);
  expect(await get("/odd")).toEqual([500, "cell Worker failed"]);
  expect(errors[0]).toBeInstanceOf(IrregularAnswerError);
  expect(await get("/next")).toEqual([200, "own"]);
});

test("an application does not frame its answer: transfer-encoding, connection and upgrade are dropped", async () => {
  const { get, errors } = await fleetWith((_, response) => {
    response.setHeader("Connection", "close, x-a");
    response.writeHead(200, {
      "Transfer-Encoding": "gzip",
      "content-length": 5,
      Upgrade: "h2c",
      "keep-alive": "timeout=9",
    });
    response.end("hello");
  });
  expect(await get("/odd")).toEqual([200, "hello"]);
  expect(await get("/odd")).toEqual([200, "hello"]);
  expect(errors).toEqual([]);
});

test("a length without a body is right where there is none: HEAD and 304", async () => {
  const { get, errors } = await fleetWith((request, response) => {
    response.writeHead(request.method === "HEAD" ? 200 : 304, { "content-length": "5" }).end();
  });
  expect(await get("/odd", "HEAD")).toEqual([200, ""]);
  expect(await get("/odd")).toEqual([304, ""]);
  expect(errors).toEqual([]);
});

test("what a handler set before it threw goes into no answer of the node", async () => {
  const { get } = await fleetWith((_, response, call) => {
    response.setHeader("content-length", "1000").setHeader("x-secret", "1");
    response.statusMessage = "Mine";
    if (call.signal.aborted) return;
    throw new TypeError("boom");
  });
  expect(await get("/odd")).toEqual([500, "cell Worker failed"]);
  let isOwner = true;
  const stale = await startFleet(
    [
      {
        onFetch: (_, response, call) => {
          if (isOwner) return void response.end();
          response.setHeader("content-length", "1000");
          call.answerStale();
        },
      },
    ],
    { deadlineMs: 1 },
  );
  // The tunnel is there before: to dial one takes longer than the deadline on a machine that has no time for us.
  await (await stale.client.fetch(cell, "http://cell/")).text();
  await until("an idle tunnel", () => stale.client.counts().idle === 1);
  isOwner = false;
  await expect(stale.client.fetch(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_STALE_OWNER",
  });
});

test("an answer that ends twice, or whose handler fails after its end, stands", async () => {
  const { get, errors } = await fleetWith(async (_, response) => {
    response.end("first");
    response.end("second");
    await sleep(1);
    throw new TypeError("late");
  });
  expect(await get("/odd")).toEqual([200, "first"]);
  await until("both reports", () => errors.length === 2);
  expect(await get("/next")).toEqual([200, "own"]);
});

test("handlers that reject, onError among them, end no process", async () => {
  const warned: Error[] = [];
  const warn = (warning: Error) => void warned.push(warning);
  process.on("warning", warn);
  const { client } = await startFleet([
    {
      onError: () => Promise.reject(new TypeError("from onError")),
      onFetch: () => Promise.reject(new TypeError("from onFetch")),
      onConnect: () => Promise.reject(new TypeError("from onConnect")),
    },
  ]);
  const response = await client.fetch(cell, "http://cell/");
  expect(response.status).toBe(500);
  await response.text();
  await expect(client.connect(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_TUNNEL_LOST",
  });
  await until("warnings", () => warned.filter(({ message }) => message === "from onError").length === 2);
  process.off("warning", warn);
});

test("a taker of raw tunnels that rejects cuts the tunnel, and ends no process", async () => {
  const warned: Error[] = [];
  const warn = (warning: Error) => void warned.push(warning);
  process.on("warning", warn);
  const { client, nodes } = await startFleet([
    { onTunnel: () => Promise.reject(new TypeError("from onTunnel")) },
  ]);
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({
    code: expect.stringMatching(/^CELLKIT_PEER_(?:UNREACHABLE|TUNNEL_LOST)$/),
  });
  await until("a warning", () => warned.some(({ message }) => message === "from onTunnel"));
  await until("no tunnel", () => nodes[0]?.listener.counts().raw === 0);
  process.off("warning", warn);
});

test("an interim head before the answer to a handshake does not hide the stale marker in it", async () => {
  let runs = 0;
  const { client } = await startFleet([
    {
      onConnect: (_, socket) => {
        runs += 1;
        socket.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 409 Conflict\r\nx-cells-route-");
        socket.write("error: stale-owner\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nno");
      },
    },
  ]);
  const answer = await client.connect(cell, "http://cell/");
  if (answer.kind !== "response") throw new TypeError("it was accepted");
  expect([answer.response.status, await answer.response.text()]).toEqual([409, "no"]);
  expect(runs).toBe(1);
  await until("no tunnel that nobody reads", () => client.counts().tunnels === 0);
});

test.each([
  ["no HTTP", "garbage\r\n\r\n", "400"],
  ["a head that is too large", `GET / HTTP/1.1\r\nx: ${"x".repeat(100_000)}\r\n\r\n`, "431"],
])("what refuses %s inside of a tunnel is a node", async (_, bytes, status) => {
  const { nodes } = await startFleet([{}]);
  const answer = await establishedTunnel(nodes[0]?.address ?? { host: "", port: 0 }, bytes);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\r\nx-cells-peer-version: 5\r\n`));
});
