// A client that has ended its side of the connection: it waits for its answer, or is gone, and both look alike.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { requestBytes, TestEdge } from "./support/edge.ts";
import { okAnswer } from "./support/raw-backend.ts";
import { TlsClient } from "./support/tls-client.ts";

const submission = requestBytes("POST /v1/executions", [], "{}");
const halfOpen = { allowHalfOpen: true } as object;

/** A backend that answers when the test says. */
function parking() {
  const parked: Socket[] = [];
  return { parked, answer: (_request: unknown, socket: Socket) => void parked.push(socket) };
}

describe("a client that ends its side", () => {
  it.each(["behind its request", "while its request is at the backend"])(
    "%s has its answer, and then the end",
    async (when) => {
      const { parked, answer } = parking();
      await using edge = await TestEdge.open({ answer });
      using client = await edge.client(halfOpen);
      using other = await edge.client();
      client.send(submission);
      if (when === "behind its request") client.socket.end();
      await until("the request at the backend", () => parked.length === 1);
      await new Promise<void>((resolve) => client.socket.end(resolve));
      // What was sent later is answered: so the end has been seen.
      await other.send(requestBytes("GET /v1/cells")).answers();
      parked[0]?.write(okAnswer);
      expect(await client.closed()).toMatchObject([
        { status: 200, fields: { connection: "close" }, body: '{"ok":true}' },
      ]);
      expect(client.error).toBeUndefined();
      expect([edge.backend.requests.length, edge.backend.connections.ever]).toEqual([1, 1]);
      expect(edge.listener.counts).toMatchObject({ forwarded: 1, cut: 0 });
    },
  );

  it("behind several requests has all their answers, the last of which says that it is", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client(halfOpen);
    client.send(submission.repeat(2) + requestBytes("GET /v1/cells")).socket.end();
    const answers = await client.closed();
    expect(answers.map(({ status, fields }) => [status, fields["connection"]])).toEqual([
      [200, "keep-alive"],
      [200, "keep-alive"],
      [404, "close"],
    ]);
  });

  it("has an answer that is long as a whole", async () => {
    const length = 600_000;
    await using edge = await TestEdge.open({
      answer: (_, socket) =>
        void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${"b".repeat(length)}`),
    });
    using client = await edge.client(halfOpen);
    client.send(requestBytes("GET /v1/executions/a")).socket.end();
    expect((await client.closed()).map(({ body }) => body.length)).toEqual([length]);
  });

  it.each([
    ["within its body", submission.slice(0, -1), 413],
    ["within its head", submission.slice(0, 40), 400],
  ])("%s is refused at once, and the backend not asked", async (_when, bytes, status) => {
    await using edge = await TestEdge.open({ limits: { lingerMs: 60_000 } });
    using client = await edge.client(halfOpen);
    client.send(bytes).socket.end();
    expect((await client.closed()).map((answer) => answer.status)).toEqual([status]);
    expect(edge.backend.connections.ever).toBe(0);
  });

  it("behind a request that is refused, whose body is still to come, is not waited for", async () => {
    await using edge = await TestEdge.open({ limits: { lingerMs: 60_000 } });
    using client = await edge.client(halfOpen);
    client.send("POST /v1/cells HTTP/1.1\r\nHost: e\r\nContent-Length: 5\r\n\r\na");
    await until("the refusal", () => client.text.endsWith("required\n"));
    client.socket.end();
    expect((await client.closed()).map(({ status }) => status)).toEqual([404]);
  });

  it("within its handshake is closed at once", async () => {
    await using edge = await TestEdge.open({ limits: { handshakeTimeoutMs: 600_000 } });
    const socket = connect({ port: edge.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.resume().end("\x16\x03\x01");
    await once(socket, "close");
    await until("its failure", () => edge.listener.counts.handshakeFailures === 1);
  });

  it("without a request is closed", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client(halfOpen);
    client.socket.end();
    expect(await client.closed()).toEqual([]);
  });
});

describe("a client that may be gone", () => {
  it("has a 502 once it was waited with for long enough, and nothing behind it is begun", async () => {
    const { parked, answer } = parking();
    await using edge = await TestEdge.open({ answer, limits: { halfClosedMs: 200 } });
    using client = await edge.client(halfOpen);
    client.send(submission.repeat(2));
    await until("the first at the backend", () => parked.length === 1);
    client.socket.end();
    expect((await client.closed()).map(({ status }) => status)).toEqual([502]);
    await until("the end towards the backend", () => edge.backend.connections.open === 0);
    expect([parked.length, edge.listener.counts.unavailable]).toEqual([1, 1]);
  });

  it("and has closed its whole connection, leaves nothing open after that time", async () => {
    await using edge = await TestEdge.open({ answer: () => undefined, limits: { halfClosedMs: 200 } });
    const client = await edge.client();
    client.send(submission);
    await until("the request at the backend", () => edge.backend.requests.length === 1);
    client[Symbol.dispose]();
    await until("the end towards the backend", () => edge.backend.connections.open === 0);
    await until("the end towards the client", () => edge.listener.open.connections === 0);
    expect(edge.listener.open.requests).toBe(0);
  });

  it("for certain, as its connection was reset, frees its place at the backend at once", async () => {
    await using edge = await TestEdge.open({ answer: () => undefined, limits: { halfClosedMs: 600_000 } });
    const socket = connect({ port: edge.port, host: "127.0.0.1" });
    const client = await TlsClient.over(connectTls({ socket, ca: edge.ca.cert }));
    client.send(submission);
    await until("the request at the backend", () => edge.backend.requests.length === 1);
    socket.resetAndDestroy();
    await until("the end towards the backend", () => edge.backend.connections.open === 0);
    await until("the end of the request", () => edge.listener.counts.cut === 1);
    client[Symbol.dispose]();
  });
});
