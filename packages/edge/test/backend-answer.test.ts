// What becomes of whatever a backend may answer: it as it is, or one 502.
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { requestBytes, TestEdge } from "./support/edge.ts";
import { nobody, okAnswer } from "./support/raw-backend.ts";

const unavailable = "parent owner unavailable; reconcile original identity\n";

describe("the backend's answer", () => {
  it.each<[string, string]>([
    ["that closes before it answers", ""],
    ["that closes within the head", "HTTP/1.1 200 OK\r\nContent-Le"],
    ["that closes within the body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"],
    ["that closes within its chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf"],
    ["that is no HTTP", "SSH-2.0-x\r\n"],
    [
      "that switches protocols",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    ],
  ])("%s becomes one 502, after exactly one call", async (_, bytes) => {
    await using edge = await TestEdge.open({ answer: (_request, socket) => void socket.end(bytes) });
    using client = await edge.client();
    client.send(requestBytes("POST /v1/executions", [], "{}"));
    expect(await client.answers()).toMatchObject([
      { status: 502, fields: { "content-type": "text/plain; charset=utf-8" }, body: unavailable },
    ]);
    expect(edge.backend.requests.length).toBe(1);
    expect(edge.backend.connections.ever).toBe(1);
    client.send(requestBytes("GET /v1/cells"));
    expect((await client.answers(2)).map(({ status }) => status)).toEqual([502, 404]);
  });

  it.each<[string, string, number]>([
    [
      "with a length and chunks",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
      502,
    ],
    ["with two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502],
    ["in a coding that nobody undoes", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab", 502],
    [
      "in a coding within chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
      502,
    ],
    ["with a bare LF", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", 502],
    ["with a NUL in a field", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\na", 502],
    ["with a head past all bounds", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(70_000)}\r\n\r\n`, 502],
    [
      "with an answer behind it that nobody asked for",
      `${okAnswer}HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\npoison`,
      200,
    ],
    ["with a byte behind it", `${okAnswer}x`, 200],
    [
      "to 304 with a length of what it does not send",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
      304,
    ],
  ])("%s is one answer, and never another request's", async (_, bytes, status) => {
    let count = 0;
    await using edge = await TestEdge.open({
      limits: { backendConnectionCount: 1 },
      answer(_request, socket) {
        count += 1;
        socket.write(count === 1 ? bytes : okAnswer);
      },
    });
    using client = await edge.client();
    const fields = ["Connection: close"];
    expect(
      (await client.send(requestBytes("GET /v1/executions/first", fields)).closed()).map(
        (each) => each.status,
      ),
    ).toEqual([status]);
    using next = await edge.client();
    expect(await next.send(requestBytes("GET /v1/executions/second")).answers()).toMatchObject([
      { status: 200, body: '{"ok":true}' },
    ]);
  });

  it.each<[string, (socket: Socket) => void]>([
    ["an end", (socket) => socket.end()],
    ["a reset", (socket) => socket.resetAndDestroy()],
  ])("without length or chunks could be a part of itself: %s makes it a 502", async (_, end) => {
    await using edge = await TestEdge.open({
      answer: (_request, socket) =>
        void socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", () => end(socket)),
    });
    using client = await edge.client();
    client.send(requestBytes("GET /v1/executions/a"));
    expect(await client.answers()).toMatchObject([{ status: 502, body: unavailable }]);
  });

  it.each(["Content-Length: 100\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])(
    "that a reset breaks off is a 502 (case %#)",
    async (rest) => {
      await using edge = await TestEdge.open({
        answer: (_request, socket) =>
          void socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n${rest}`, () =>
            socket.resetAndDestroy(),
          ),
      });
      using client = await edge.client();
      client.send(requestBytes("GET /v1/executions/a"));
      expect(await client.answers()).toMatchObject([{ status: 502, body: unavailable }]);
    },
  );

  it("is whole for everybody, though the backend closes after each without having said so", async () => {
    await using edge = await TestEdge.open({
      limits: { backendConnectionCount: 2 },
      answer: (_request, socket) => void socket.end(okAnswer),
    });
    const clients = await Promise.all(Array.from({ length: 8 }, () => edge.client()));
    const load = async (client: (typeof clients)[number]) => {
      for (let count = 1; count <= 10; count += 1)
        await client.send(requestBytes("POST /v1/executions", [], "{}")).answers(count);
      return (await client.answers(10)).map(({ status }) => status);
    };
    const statuses = (await Promise.all(clients.map(load))).flat();
    expect(statuses).toEqual(Array.from({ length: 80 }, () => 200));
    expect(edge.backend.connections.ever).toBe(80);
    expect(edge.backend.requests[0]?.fields).toContainEqual(["connection", "close"]);
    for (const client of clients) client[Symbol.dispose]();
  });

  it("that nobody gives, as nobody listens, is a 502", async () => {
    await using edge = await TestEdge.open({ origin: nobody });
    using client = await edge.client();
    client.send(requestBytes("GET /v1/capabilities"));
    expect(await client.answers()).toMatchObject([{ status: 502, body: unavailable }]);
  });

  it.each<[string, string, number, string]>([
    ["with a length", okAnswer, 200, '{"ok":true}'],
    [
      "in chunks",
      "HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
      202,
      "abc",
    ],
    ["without a body", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""],
    [
      "that tells of others first",
      `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${okAnswer}`,
      200,
      '{"ok":true}',
    ],
  ])("%s passes", async (_, bytes, status, body) => {
    await using edge = await TestEdge.open({
      answer: (_request, socket) => void socket.write(bytes),
    });
    using client = await edge.client();
    client.send(requestBytes("GET /v1/capabilities"));
    const [answer] = await client.answers();
    expect(answer).toMatchObject({ status, body });
    expect(answer?.fields["transfer-encoding"]).toBeUndefined();
    expect(answer?.fields["content-length"]).toBe(status === 204 ? undefined : String(body.length));
    client.send(requestBytes("GET /v1/cells"));
    expect((await client.answers(2)).map((each) => each.status)).toEqual([status, 404]);
  });

  it("that is long passes as it comes, and one that breaks off cuts the client off", async () => {
    const part = "b".repeat(300_000);
    await using edge = await TestEdge.open({
      answer(request, socket) {
        const isWhole = request.line.includes("/whole ");
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${2 * part.length}\r\n\r\n${part}`);
        if (isWhole) socket.write(part);
        else socket.end("b");
      },
    });
    using client = await edge.client();
    client.send(requestBytes("GET /v1/executions/whole"));
    expect((await client.answers())[0]?.body.length).toBe(600_000);
    client.text = "";
    client.send(requestBytes("GET /v1/executions/half"));
    expect(await client.closed()).toEqual([]);
    expect(client.text.length).toBeLessThan(600_000);
    expect(client.text).not.toContain("502");
  });
});
