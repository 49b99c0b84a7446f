import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import type { RouterLimits } from "../src/index.ts";
import { type HeldSocketTimeouts, holdSocketTimeouts } from "./support/held-time.ts";
import { rawCall } from "./support/raw-call.ts";
import { openTestRouter, tokens } from "./support/router.ts";

/** A dispatcher that keeps connections, as Node's own servers do; `connections` says on which one each call came. */
async function openKeeping(answer: (path: string) => string = () => '{"requestId":"run-1"}') {
  const calls: { call: string; connection: number }[] = [];
  const sockets: Socket[] = [];
  const server = createServer((request, response) => {
    const { method = "", url = "", socket } = request;
    calls.push({ call: `${method} ${url}`, connection: sockets.indexOf(socket) });
    if (keeping.cut(socket)) return;
    request.resume().on("end", async () => {
      await keeping.answers;
      const body = url === "/v1/health" ? '{"ok":true,"kvm":true}' : answer(url);
      response
        .writeHead(method === "POST" ? 202 : 200, { "Content-Length": Buffer.byteLength(body) })
        .end(body);
    });
  });
  server.on("connection", (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const keeping = {
    calls,
    sockets,
    /** Whether a call is cut off instead of being answered. */
    cut: (_socket: Socket): boolean => false,
    /** Nothing is answered before. */
    answers: Promise.resolve(),
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return keeping;
}

const open = ({ origin }: { origin: string }, keepAlive: boolean, limits: RouterLimits = {}) =>
  openTestRouter([], { backends: { origins: async () => [origin] }, keepAlive, limits });

describe("connections to a dispatcher", () => {
  // Neither side ends one because nobody has used it for a while.
  let timeouts: HeldSocketTimeouts;
  beforeEach(() => {
    timeouts = holdSocketTimeouts();
  });

  it("are one for each call, unless asked otherwise", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, false);
    await router.submit("run-1");
    for (let read = 0; read < 3; read += 1) await router.read("/v1/executions/run-1");
    expect(dispatcher.calls.map(({ connection }) => connection)).toEqual([0, 1, 2, 3, 4]);
  });

  it("are kept for calls that may be repeated, and a submission never uses one", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    expect((await router.submit("run-1"))?.status).toBe(202);
    for (let read = 0; read < 3; read += 1) {
      const answer = await router.read("/v1/executions/run-1");
      expect(answer?.body).toBe('{"requestId":"run-1"}');
      expect(answer?.fields.filter(([name]) => /^(connection|keep-alive)$/i.test(name))).toEqual([
        ["Connection", "close"],
      ]);
    }
    await router.submit("run-2");
    expect(dispatcher.calls).toEqual([
      { call: "GET /v1/health", connection: 0 },
      { call: "POST /v1/executions", connection: 1 },
      { call: "GET /v1/executions/run-1", connection: 0 },
      { call: "GET /v1/executions/run-1", connection: 0 },
      { call: "GET /v1/executions/run-1", connection: 0 },
      { call: "GET /v1/health", connection: 0 },
      { call: "POST /v1/executions", connection: 2 },
    ]);
  });

  it("are not used for prewarming, which nobody may send twice either", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    const answer = await rawCall(
      router.port,
      `POST /v1/artifacts/prewarm HTTP/1.1\r\nAuthorization: Bearer ${tokens.client}\r\nX-Celln-Backend: ${dispatcher.origin}\r\nContent-Length: 2\r\n\r\n{}`,
    );
    expect(answer?.status).toBe(202);
    await router.read("/v1/executions/run-1");
    expect(dispatcher.calls.slice(-2)).toEqual([
      { call: "POST /v1/artifacts/prewarm", connection: 2 },
      { call: "GET /v1/executions/run-1", connection: 0 },
    ]);
  });

  it("that were closed while they were kept cost nobody an answer", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    for (const cut of [(socket: Socket) => socket.destroy(), (socket: Socket) => socket.resetAndDestroy()]) {
      for (const socket of dispatcher.sockets) cut(socket);
      expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
    }
  });

  it.each([
    ["closed", (socket: Socket) => void socket.end()],
    ["reset", (socket: Socket) => void socket.resetAndDestroy()],
  ])("that are %s in the moment of the next call are tried once more, on a new one", async (_how, cut) => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    dispatcher.cut = (socket) => {
      const isKept = dispatcher.sockets.indexOf(socket) === 0;
      if (isKept) cut(socket);
      return isKept;
    };
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
    expect(dispatcher.calls.slice(-2)).toEqual([
      { call: "GET /v1/executions/run-1", connection: 0 },
      { call: "GET /v1/executions/run-1", connection: 2 },
    ]);
    dispatcher.cut = (socket) => {
      cut(socket);
      return true;
    };
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(503);
  });

  it.each([
    ["ends", (socket: Socket) => void socket.end("HTTP/1.1 200 OK\r\nX:")],
    [
      "is reset",
      (socket: Socket) => void socket.write("HTTP/1.1 200 OK\r\nX:", () => socket.resetAndDestroy()),
    ],
    ["is silent", () => undefined],
  ])("whose answer %s before it is whole are not tried again", async (how, cut) => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true, { operationMs: 200 });
    await router.submit("run-1");
    dispatcher.cut = (socket) => {
      cut(socket);
      return true;
    };
    const answer = router.read("/v1/executions/run-1");
    await until("the call", () => dispatcher.calls.length === 3);
    if (how === "is silent") expect(timeouts.expire(200)).toBe(1);
    expect((await answer)?.status).toBe(503);
    expect(dispatcher.calls.slice(2)).toEqual([{ call: "GET /v1/executions/run-1", connection: 0 }]);
  });

  it("on which something comes that nobody asked for are ended, and it is nobody's answer", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    dispatcher.sockets[0]?.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
    await until("the end", () => dispatcher.sockets[0]?.destroyed);
    expect((await router.read("/v1/executions/run-1"))?.body).toBe('{"requestId":"run-1"}');
    expect(dispatcher.calls.at(-1)?.connection).toBe(2);
  });

  it("carry nobody's second answer to the call of another, however late it comes", async () => {
    await using dispatcher = await openKeeping((path) => `{"requestId":"${path.split("/").at(-1)}"}`);
    await using router = await open(dispatcher, true);
    for (const id of ["run-1", "run-2"]) await router.submit(id);
    // The second answer comes when the connection was taken again: before the one that is asked for.
    dispatcher.cut = (socket) => {
      if (dispatcher.sockets.indexOf(socket) !== 0) return false;
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{"requestId":"run-1","x":"late"}');
      return true;
    };
    const answer = await router.read("/v1/executions/run-2");
    expect(answer?.body).toBe('{"requestId":"run-2"}');
    expect(dispatcher.calls.slice(-2).map(({ connection }) => connection)).toEqual([0, 3]);
    await until("the end of the first connection", () => dispatcher.sockets[0]?.destroyed);
  });

  it("whose answer does not begin as HTTP does end at once", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    dispatcher.cut = (socket) => socket.write("\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(503);
  });

  it("that nobody uses are ended after four seconds", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    await until("a wait for somebody", () => timeouts.expire(4_000) === 1);
    await until("the end", () => dispatcher.sockets[0]?.destroyed);
  });

  it("are at most 32 for each dispatcher", async () => {
    await using dispatcher = await openKeeping();
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    const held = Promise.withResolvers<void>();
    dispatcher.answers = held.promise;
    const reads = Array.from({ length: 40 }, () => router.read("/v1/executions/run-1"));
    await until("40 reads", () => dispatcher.calls.length === 42);
    held.resolve();
    await Promise.all(reads);
    await until(
      "32 that are left",
      () => dispatcher.sockets.filter(({ destroyed }) => !destroyed).length <= 32,
    );
    expect(dispatcher.sockets.length).toBeGreaterThan(32);
  });

  it("are ended when the router stops", async () => {
    await using dispatcher = await openKeeping();
    const router = await open(dispatcher, true);
    await router.submit("run-1");
    await router.read("/v1/executions/run-1");
    expect(dispatcher.sockets.some(({ destroyed }) => !destroyed)).toBe(true);
    await router[Symbol.asyncDispose]();
    await until("the end of all", () => dispatcher.sockets.every(({ destroyed }) => destroyed));
  });

  it("carry an answer of several packets wholly", async () => {
    const record = JSON.stringify({ requestId: "run-1", output: "é".repeat(300_000) });
    await using dispatcher = await openKeeping((path) => (path.endsWith("run-1") ? record : "{}"));
    await using router = await open(dispatcher, true);
    await router.submit("run-1");
    for (let read = 0; read < 2; read += 1) {
      const answer = await router.read("/v1/executions/run-1");
      expect(Buffer.from(answer?.body ?? "", "latin1").toString()).toBe(record);
    }
  });
});
