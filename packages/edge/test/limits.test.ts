// Slow, idle, many, gone: what a client or a backend may take of an edge is bounded.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { bearer, requestBytes, TestEdge } from "./support/edge.ts";
import { okAnswer, type ReceivedRequest } from "./support/raw-backend.ts";

describe("slow clients", () => {
  it("a head that trickles is given up with 408", async () => {
    await using edge = await TestEdge.open({ limits: { headTimeoutMs: 300 } });
    using client = await edge.client();
    client.send("GET /v1/health HTTP/1.1\r\nHost: e\r\n");
    const trickle = setInterval(() => client.send("a"), 50);
    const answers = await client.closed().finally(() => clearInterval(trickle));
    expect(answers).toMatchObject([{ status: 408, fields: { connection: "close" } }]);
    expect(edge.backend.connections.ever).toBe(0);
  });

  it("a connection without a handshake is ended", async () => {
    await using edge = await TestEdge.open({ limits: { handshakeTimeoutMs: 300 } });
    const socket = connect({ port: edge.port, host: "127.0.0.1" }).on("error", () => undefined);
    await once(socket.resume(), "close");
    await until("its failure", () => edge.listener.counts.handshakeFailures === 1);
  });

  it("a connection without a byte is ended", async () => {
    await using edge = await TestEdge.open({ limits: { headTimeoutMs: 300, requestTimeoutMs: 600 } });
    using client = await edge.client();
    expect((await client.closed()).map(({ status }) => status)).toEqual([408]);
  });

  it("a body that trickles is given up with 408, and the backend is not asked", async () => {
    await using edge = await TestEdge.open({
      limits: { headTimeoutMs: 300, requestTimeoutMs: 600, lingerMs: 100 },
    });
    using client = await edge.client();
    client.send("POST /v1/executions HTTP/1.1\r\nHost: e\r\nContent-Length: 1000\r\n\r\n");
    const trickle = setInterval(() => client.send("a"), 50);
    const answers = await client.closed().finally(() => clearInterval(trickle));
    expect(answers).toMatchObject([{ status: 408, body: "request did not arrive in time\n" }]);
    expect(edge.backend.connections.ever).toBe(0);
  });

  it("a kept connection without a request is closed", async () => {
    await using edge = await TestEdge.open({ limits: { idleTimeoutMs: 100 } });
    using client = await edge.client();
    client.send(requestBytes("GET /v1/health"));
    expect((await client.closed()).map(({ status }) => status)).toEqual([200]);
  });

  it("one that never takes its answer is cut", async () => {
    const bytes = 50_000_000;
    await using edge = await TestEdge.open({
      answer: (_, socket) =>
        void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n${"a".repeat(bytes)}`),
    });
    using client = await edge.client();
    client.socket.once("data", () => client.socket.pause());
    client.send(requestBytes("GET /v1/capabilities"));
    await until("the begin of the answer", () => client.text !== "");
    expect(edge.listener.open.requests).toBe(1);
    // From here on it is a hundred seconds later.
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 100_000);
    onTestFinished(() => clock.mockRestore());
    await until("the cut", () => edge.listener.open.connections === 0);
    expect(edge.listener.counts.cut).toBe(1);
    await until("the end towards the backend", () => edge.backend.connections.open === 0);
  });

  it("what a refused client still sends is read only so far", async () => {
    await using edge = await TestEdge.open({ limits: { lingerMs: 60_000, lingerBytes: 100_000 } });
    using client = await edge.client();
    client.send("POST /v1/drain HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n");
    await client.answers();
    const flood = setInterval(() => client.send(`4000\r\n${"a".repeat(16_384)}\r\n`), 5);
    await until("the cut", () => edge.listener.open.connections === 0).finally(() => clearInterval(flood));
  });
});

it("a stop does not wait for clients that neither ask nor leave", async () => {
  const tenMinutes = { headTimeoutMs: 600_000, requestTimeoutMs: 600_000, idleTimeoutMs: 600_000 };
  await using edge = await TestEdge.open({ limits: { lingerMs: 100, ...tenMinutes } });
  const clients = await Promise.all([0, 1, 2].map(() => edge.client({ allowHalfOpen: true } as object)));
  clients[1]?.send("GET /v1/health HTTP/1.1\r\n");
  await clients[2]?.send(requestBytes("GET /v1/health")).answers();
  // Waiting for them would end with one of these, long after the test's own time.
  await edge.listener.close();
  for (const client of clients) client[Symbol.dispose]();
});

describe("a slow backend", () => {
  const silent = () => undefined;

  it("that sends no head in time is a 502, after one call", async () => {
    await using edge = await TestEdge.open({ answer: silent, limits: { backendHeadTimeoutMs: 1_000 } });
    using client = await edge.client();
    client.send(requestBytes("POST /v1/executions", [], "{}"));
    await until("the request at the backend", () => edge.backend.requests.length > 0);
    expect((await client.answers()).map(({ status }) => status)).toEqual([502]);
    expect(edge.backend.requests.length).toBe(1);
  });

  it("that stops within its answer is a 502, after one call", async () => {
    await using edge = await TestEdge.open({
      answer: (_, socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
      limits: { backendIdleTimeoutMs: 1_000 },
    });
    using client = await edge.client();
    client.send(requestBytes("POST /v1/executions", [], "{}"));
    await until("the request at the backend", () => edge.backend.requests.length > 0);
    expect((await client.answers()).map(({ status }) => status)).toEqual([502]);
    expect(edge.backend.requests.length).toBe(1);
  });

  it("has the client answered before its time is over", async () => {
    await using edge = await TestEdge.open({
      answer: silent,
      limits: { answerTimeoutMs: 500 },
    });
    using client = await edge.client();
    client.send(requestBytes("POST /v1/executions", [], "{}"));
    expect((await client.closed()).map(({ status }) => status)).toEqual([502]);
    await until("the end towards the backend", () => edge.backend.connections.open === 0);
  });
});

describe("the connections to the backend", () => {
  it("are 32 at most; further requests wait, and each is served once", async () => {
    const parked: [ReceivedRequest, Socket][] = [];
    let answered = 0;
    let most = 0;
    await using edge = await TestEdge.open({
      answer: (request, socket) => {
        parked.push([request, socket]);
        most = Math.max(most, edge.backend.requests.length - answered);
      },
    });
    const clients = await Promise.all(Array.from({ length: 50 }, () => edge.client()));
    for (const [at, client] of clients.entries()) client.send(requestBytes(`GET /v1/executions/run-${at}`));
    await until("32 requests at the backend", () => parked.length === 32);
    await until("the rest in the queue", () => edge.listener.backend.counts.waiting === 18);
    expect(edge.backend.connections.open).toBe(32);
    await until("all answers", () => {
      for (const [, socket] of parked.splice(0)) {
        answered += 1;
        socket.write(okAnswer);
      }
      return answered === 50;
    });
    for (const client of clients) expect((await client.answers()).map(({ status }) => status)).toEqual([200]);
    expect(most).toBe(32);
    expect(edge.backend.connections.ever).toBe(50);
    expect(new Set(edge.backend.requests.map(({ line }) => line)).size).toBe(50);
    for (const client of clients) client[Symbol.dispose]();
  });

  it("that waited for one and is gone is never sent", async () => {
    const parked: Socket[] = [];
    await using edge = await TestEdge.open({
      limits: { backendConnectionCount: 1, halfClosedMs: 100 },
      answer: (_, socket) => void parked.push(socket),
    });
    using first = await edge.client();
    first.send(requestBytes("GET /v1/executions/first"));
    await until("the first at the backend", () => parked.length === 1);
    const second = await edge.client();
    second.send(requestBytes("POST /v1/executions", [], "{}"));
    await until("the second in the queue", () => edge.listener.backend.counts.waiting === 1);
    second[Symbol.dispose]();
    await until("its end", () => edge.listener.open.requests === 1);
    parked[0]?.write(okAnswer);
    await first.answers();
    first.send(requestBytes("GET /v1/executions/third"));
    await until("the third at the backend", () => parked.length === 2);
    expect(edge.backend.requests.map(({ line }) => line)).toEqual([
      "GET /v1/executions/first HTTP/1.1",
      "GET /v1/executions/third HTTP/1.1",
    ]);
  });

  it("what waits behind a request of a client that goes away is never begun", async () => {
    const parked: Socket[] = [];
    await using edge = await TestEdge.open({
      answer: (_, socket) => void parked.push(socket),
      limits: { halfClosedMs: 100 },
    });
    const [client, other] = await Promise.all([edge.client(), edge.client()]);
    // Two connections to the backend are there, so that nothing has to be dialled.
    for (const each of [client, other]) each.send(requestBytes("GET /v1/health"));
    await until("both at the backend", () => parked.length === 2);
    for (const socket of parked) socket.write(okAnswer);
    for (const each of [client, other]) await each.answers();
    client.send(requestBytes("GET /v1/executions/one") + requestBytes("GET /v1/executions/two"));
    await until("the first at the backend", () => parked.length === 3);
    client[Symbol.dispose]();
    await until("its end", () => edge.listener.open.connections === 1 && edge.listener.open.requests === 0);
    edge.backend.answer = (_, socket) => void socket.write(okAnswer);
    await other.send(requestBytes("GET /v1/capabilities")).answers(2);
    other[Symbol.dispose]();
    expect(edge.backend.requests.map(({ line }) => line.split(" ")[1])).toEqual([
      ...["/v1/health", "/v1/health", "/v1/executions/one", "/v1/capabilities"],
    ]);
  });
});

it("a stop cuts what is still open to the backend, whoever waits for it", async () => {
  await using edge = await TestEdge.open({ answer: () => undefined });
  const failures: Error[] = [];
  edge.listener.backend.send(
    { method: "GET", target: "/v1/health", fields: [], body: undefined },
    {
      ...{ onRequestStart: () => undefined, onResponseStart: () => undefined },
      ...{ onResponseData: () => undefined, onResponseEnd: () => undefined },
      onResponseError: (_controller, error) => void failures.push(error),
    },
  );
  await until("the request at the backend", () => edge.backend.requests.length === 1);
  await edge.listener.close();
  await until("the end towards the backend", () => edge.backend.connections.open === 0);
  expect(failures).toMatchObject([{ code: "UND_ERR_DESTROYED" }]);
});

describe("the connections of clients", () => {
  it("past the cap get 503 for their first request, past twice the cap nothing", async () => {
    await using edge = await TestEdge.open({ limits: { connectionCount: 2 } });
    const served = await Promise.all([edge.client(), edge.client()]);
    const excess = await edge.client();
    excess.send(
      requestBytes(
        "POST /v1/executions",
        [`Authorization: Bearer ${bearer}`, "Accept: application/json"],
        "{}",
      ),
    );
    expect(await excess.closed()).toMatchObject([
      { status: 503, body: '{"error":"too many connections"}\n' },
    ]);
    expect(edge.backend.connections.ever).toBe(0);
    await until("its end", () => edge.listener.open.connections === 2);
    const further = await Promise.all([edge.client(), edge.client()]);
    expect(edge.listener.counts.dropped).toBe(0);
    for (const count of [1, 2]) {
      await expect(edge.client()).rejects.toMatchObject({ code: "ECONNRESET" });
      expect(edge.listener.counts.dropped).toBe(count);
    }
    for (const client of [...served, ...further]) client[Symbol.dispose]();
    await until("room", () => edge.listener.open.connections === 0);
    using later = await edge.client();
    later.send(requestBytes("GET /v1/health"));
    expect((await later.answers()).map(({ status }) => status)).toEqual([200]);
  });

  it("serve requests sent at once one after another, and not without bound", async () => {
    const parked: Socket[] = [];
    await using edge = await TestEdge.open({ answer: (_, socket) => void parked.push(socket) });
    using client = await edge.client();
    client.send(requestBytes("GET /v1/executions/a") + requestBytes("GET /v1/executions/b"));
    await until("one at the backend", () => parked.length === 1);
    expect(edge.listener.open.requests).toBe(1);
    parked[0]?.write(okAnswer);
    await until("the other one", () => parked.length === 2);
    parked[1]?.write(okAnswer);
    expect((await client.answers(2)).map(({ status }) => status)).toEqual([200, 200]);
    client.send(requestBytes("GET /v1/executions/c").repeat(18));
    await until("the next at the backend", () => parked.length === 3);
    parked[2]?.write(okAnswer);
    expect((await client.closed()).map(({ fields }) => fields["connection"])).toEqual([
      "keep-alive",
      "keep-alive",
      "close",
    ]);
    expect(edge.backend.requests.length).toBe(3);
  });
});
