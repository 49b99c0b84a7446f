// One request through the edge and back, each part of the way by itself.
import { describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { bearer, requestBytes, TestEdge } from "./support/edge.ts";
import { okAnswer } from "./support/raw-backend.ts";
import { refusedTargets, routeVectors } from "./support/vectors.ts";

describe("what passes", () => {
  it("reaches the backend once, with the backend's Host, and its answer comes back", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    client.send(requestBytes("POST /v1/executions", [`Authorization: Bearer ${bearer}`], '{"a":1}'));
    expect(await client.answers()).toMatchObject([
      { status: 200, fields: { "content-type": "application/json" }, body: '{"ok":true}' },
    ]);
    expect(edge.backend.problems).toEqual([]);
    expect(edge.backend.requests).toMatchObject([
      { line: "POST /v1/executions HTTP/1.1", body: Buffer.from('{"a":1}') },
    ]);
    expect(edge.backend.requests[0]?.fields).toEqual([
      ["host", edge.backend.origin.authority],
      ["connection", "close"],
      ["authorization", `Bearer ${bearer}`],
      ["content-length", "7"],
    ]);
  });

  it("keeps and loses the fields that it should, on the wire as well", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    const kept = [
      `Authorization: Bearer ${bearer}`,
      "Prefer: respond-async",
      "X-Celln-Backend: http://10.0.0.1:1",
      "X-Celln-Other: \xe9",
      "Authorization: second",
    ];
    const lost = [
      "Cookie: c",
      "Idempotency-Key: i",
      "X-Idempotency-Key: x",
      "Forwarded: for=a",
      "X-Forwarded-For: b",
      "TE: trailers",
      "Keep-Alive: 1",
      "Connection: x-hop",
      "X-Hop: 1",
      "Accept-Encoding: gzip",
    ];
    client.send(requestBytes("POST /v1/executions", [...kept, ...lost], "{}"));
    await client.answers();
    expect(edge.backend.requests[0]?.fields.slice(2)).toEqual([
      ...kept.map((line) => line.split(": ")).map(([name = "", value = ""]) => [name.toLowerCase(), value]),
      ["content-length", "2"],
    ]);
  });

  it("loses no field among very many", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    const many = Array.from({ length: 1_500 }, () => "A:b");
    client.send(requestBytes("GET /v1/capabilities", [...many, `Authorization: Bearer ${bearer}`]));
    expect((await client.answers())[0]?.status).toBe(200);
    expect(edge.backend.requests[0]?.fields.length).toBe(2 + 1_500 + 1);
    expect(edge.backend.requests[0]?.fields.at(-1)).toEqual(["authorization", `Bearer ${bearer}`]);
  });

  it("a chunked body arrives as one with a length; one of 65 536 bytes passes", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    const half = "a".repeat(32_768);
    client.send(requestBytes("POST /v1/executions", ["Transfer-Encoding: chunked"]));
    client.send(`8000\r\n${half}\r\n8000\r\n${half}\r\n0\r\n\r\n`);
    client.send(requestBytes("POST /v1/executions", [], half + half));
    expect((await client.answers(2)).map(({ status }) => status)).toEqual([200, 200]);
    expect(edge.backend.requests.map(({ body }) => body.length)).toEqual([65_536, 65_536]);
    expect(edge.backend.problems).toEqual([]);
  });

  it("is refused or not as the vectors say, and a refusal asks nothing of the backend", async () => {
    for (const mode of ["parent", "execution"] as const) {
      await using edge = await TestEdge.open({ mode, ids: "strict" });
      using client = await edge.client();
      const rows = [
        ...routeVectors[mode],
        ...refusedTargets.map((path) => ({ method: "POST", path, allowed: false })),
      ];
      for (const [at, { method, path }] of rows.entries())
        await client.send(requestBytes(`${method} ${path}`)).answers(at + 1);
      expect((await client.answers(rows.length)).map(({ status }) => status)).toEqual(
        rows.map(({ allowed }) => (allowed ? 200 : 404)),
      );
      expect(edge.backend.requests.map(({ line }) => line)).toEqual(
        rows.filter(({ allowed }) => allowed).map(({ method, path }) => `${method} ${path} HTTP/1.1`),
      );
    }
  });

  it("waits for 100 Continue only where it will be read", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    client.send(
      "POST /v1/executions HTTP/1.1\r\nHost: e\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    );
    await until("100 Continue", () => client.text.startsWith("HTTP/1.1 100 Continue\r\n\r\n"));
    expect(edge.backend.requests).toEqual([]);
    client.send("{}");
    expect((await client.answers(2)).map(({ status }) => status)).toEqual([100, 200]);
    expect(edge.backend.requests[0]?.fields.some(([name]) => name === "expect")).toBe(false);
    using refused = await edge.client();
    refused.send("POST /v1/drain HTTP/1.1\r\nHost: e\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    expect((await refused.closed()).map(({ status }) => status)).toEqual([404]);
  });
});

describe("what does not", () => {
  it.each(["declared", "streamed"])("65 537 bytes, %s: 413, and the backend is not asked", async (how) => {
    await using edge = await TestEdge.open({ limits: { lingerMs: 60_000 } });
    using client = await edge.client();
    const body = "a".repeat(65_537);
    client.send(
      how === "declared"
        ? requestBytes("POST /v1/executions", [], body)
        : `${requestBytes("POST /v1/executions", ["Transfer-Encoding: chunked"])}10001\r\n${body}\r\n0\r\n\r\n`,
    );
    const text = how === "declared" ? "parent request too large\n" : "invalid or oversized parent request\n";
    expect(await client.closed()).toMatchObject([
      { status: 413, fields: { connection: "close" }, body: text },
    ]);
    expect(client.error).toBeUndefined();
    expect(edge.backend.connections.ever).toBe(0);
  });

  it.each([
    ["a declared length", "POST /v1/executions", 413],
    ["a route", "POST /v1/drain", 404],
  ])(
    "a client refused for %s may send its body to the end, so that no reset destroys the answer",
    async (_, line, status) => {
      await using edge = await TestEdge.open({ limits: { lingerMs: 60_000 } });
      const [client, other] = await Promise.all([edge.client(), edge.client()]);
      client.send(`${line} HTTP/1.1\r\nHost: e\r\nContent-Length: 200000\r\n\r\n${"a".repeat(10_000)}`);
      expect((await client.answers()).map((answer) => answer.status)).toEqual([status]);
      for (let count = 1; count <= 10; count += 1)
        await other.send(requestBytes("GET /v1/cells")).answers(count);
      expect(client.isClosed).toBe(false);
      client.send("a".repeat(190_000));
      expect(await client.closed()).toHaveLength(1);
      expect(client.error).toBeUndefined();
      expect(edge.backend.connections.ever).toBe(0);
      other[Symbol.dispose]();
    },
  );

  it("is told in JSON to a client that asks for it, with the id that the log has", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    client.send(requestBytes("GET /v1/cells", ["Accept: application/json"]));
    const [answer] = await client.answers();
    expect(answer).toMatchObject({ status: 404, fields: { "content-type": "application/json" } });
    expect(JSON.parse(answer?.body ?? "")).toEqual({ error: "configured protocol route required" });
    const id = answer?.fields["x-request-id"] ?? "";
    await until("its line in the log", () => edge.log.some((line) => line.includes(`"request":"${id}"`)));
  });

  it("HEAD is refused without a body", async () => {
    await using edge = await TestEdge.open();
    using client = await edge.client();
    client.send(requestBytes("HEAD /v1/health", ["Connection: close"]));
    await client.closed();
    expect(client.text).toMatch(/^HTTP\/1\.1 404 .*\r\n\r\n$/s);
    expect(edge.backend.connections.ever).toBe(0);
  });
});

it("no line of the log, at its finest level, holds a bearer, a body or a refused target", async () => {
  await using edge = await TestEdge.open({
    answer: (request, socket) =>
      void (request.line.startsWith("POST") ? socket.end() : socket.write(okAnswer)),
  });
  const secrets = { bearer, body: "the-body-is-nobodys", query: "the-query-is-nobodys" };
  using client = await edge.client();
  const fields = [`Authorization: Bearer ${secrets.bearer}`, `Cookie: ${secrets.bearer}`];
  await client.send(requestBytes("GET /v1/capabilities", fields)).answers();
  await client.send(requestBytes("POST /v1/executions", fields, secrets.body)).answers(2);
  await client.send(requestBytes(`GET /v1/executions?token=${secrets.query}`, fields)).answers(3);
  client.send(`${requestBytes("GET /v1/health", fields).slice(0, -2)}broken ${secrets.bearer}\r\n\r\n`);
  expect((await client.closed()).map(({ status }) => status)).toEqual([200, 502, 404, 400]);
  await until("all lines", () => edge.log.length >= 4);
  for (const secret of Object.values(secrets)) expect(edge.log.join("")).not.toContain(secret);
});
