import { once } from "node:events";
import { connect, createServer } from "node:net";
import { Readable } from "node:stream";
import { afterEach, expect, it } from "vitest";
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
  ListenError,
  type Route,
} from "../src/index.ts";
import { exchange } from "./support/raw-http.ts";

const open: HttpServer[] = [];
afterEach(() => Promise.all(open.splice(0).map((server) => server.close({ graceMs: 0 }))));

async function started(routes: Route[], options: Partial<HttpServerOptions> = {}) {
  const server = createHttpServer({ routes, ...options });
  open.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  return { server, port, url: `http://127.0.0.1:${port}` };
}

const echo: Route = {
  method: "POST",
  path: "/echo/*",
  handle: async ({ method, path, rest, query, body }) => ({
    status: 200,
    json: { method, path, rest, q: query.get("q"), body: (await body()).toString() },
  }),
};
const metrics: Route = {
  method: "GET",
  path: "/metrics",
  handle: () => ({ status: 200, headers: { "content-type": "text/plain" }, body: "up 1\n" }),
};
const broken: Route = {
  method: "*",
  path: "/broken",
  handle: () => {
    throw new TypeError("the database password is swordfish");
  },
};

it("finds the route by method and path and hands it the request", async () => {
  const { url } = await started([metrics, echo]);
  const answer = await fetch(`${url}/echo/a/b%2Fc?q=1`, { method: "POST", body: "hello" });
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(await answer.json()).toEqual({
    method: "POST",
    path: "/echo/a/b%2Fc",
    rest: "a/b%2Fc",
    q: "1",
    body: "hello",
  });
  expect(await (await fetch(`${url}/metrics`)).text()).toBe("up 1\n");
});

it("HEAD is answered by the GET route, without a body", async () => {
  const { url } = await started([metrics]);
  const answer = await fetch(`${url}/metrics`, { method: "HEAD" });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-length")).toBe("5");
  expect(await answer.text()).toBe("");
});

it.each([
  ["an unknown path is 404", "GET", "/none", 404, { error: "not_found" }, null],
  [
    "a known path with another method is 405 and says which",
    "PUT",
    "/metrics",
    405,
    { error: "method_not_allowed" },
    "GET",
  ],
  [
    "a prefix route does not answer its own name without the slash",
    "POST",
    "/echo",
    404,
    { error: "not_found" },
    null,
  ],
  ["what a route throws is 500 without the reason", "GET", "/broken", 500, { error: "internal" }, null],
])("%s", async (_, method, path, status, body, allow) => {
  const { url } = await started([metrics, echo, broken]);
  const answer = await fetch(`${url}${path}`, { method });
  expect(answer.status).toBe(status);
  expect(answer.headers.get("allow")).toBe(allow);
  expect(await answer.json()).toEqual(body);
});

it("tells the daemon what a route threw", async () => {
  const told: unknown[] = [];
  const { url } = await started([broken], { onError: (error, request) => told.push(error, request) });
  await fetch(`${url}/broken?x=1`);
  expect(told).toEqual([expect.objectContaining({ name: "TypeError" }), { method: "GET", path: "/broken" }]);
});

it.each([
  ["declared", (length: number) => `Content-Length: ${length}\r\n\r\n${"x".repeat(length)}`],
  [
    "streamed in chunks",
    (length: number) =>
      `Transfer-Encoding: chunked\r\n\r\n${length.toString(16)}\r\n${"x".repeat(length)}\r\n0\r\n\r\n`,
  ],
])("a body past the bound, %s, is 413 and the connection closes", async (_, body) => {
  const { port } = await started([echo], { maxBodyBytes: 10 });
  const head = "POST /echo/a HTTP/1.1\r\nHost: a\r\n";
  expect(await exchange(port, `${head}${body(11)}`)).toMatch(/^HTTP\/1\.1 413 [\s\S]*body_too_large/);
  expect(await exchange(port, `${head}Connection: close\r\n${body(10)}`)).toMatch(/^HTTP\/1\.1 200 /);
});

it("an answer may be a stream and a field may come twice; a stream that breaks cuts the connection", async () => {
  const twice = { "set-cookie": ["a=1", "b=2"] };
  const { url } = await started([
    {
      method: "GET",
      path: "/whole",
      handle: () => ({ status: 200, headers: twice, body: Readable.from(["a", "b"]) }),
    },
    {
      method: "GET",
      path: "/broken",
      handle: () => ({
        status: 200,
        body: Readable.from(
          (async function* () {
            yield "a";
            throw new TypeError("no more");
          })(),
        ),
      }),
    },
  ]);
  const whole = await fetch(`${url}/whole`);
  expect([whole.headers.getSetCookie(), await whole.text()]).toEqual([["a=1", "b=2"], "ab"]);
  const reading = fetch(`${url}/broken`).then((answer) => answer.text());
  await expect(reading).rejects.toThrow();
});

it("asks the daemon before the routes, and leaves to it what it takes", async () => {
  const { url } = await started([metrics], {
    onRequest: ({ url }, response) => {
      if (url !== "/own") return false;
      response.end("own");
      return true;
    },
  });
  expect(await (await fetch(`${url}/own`)).text()).toBe("own");
  expect(await (await fetch(`${url}/metrics`)).text()).toBe("up 1\n");
});

it("a head past the bound is 431, a head that never ends 408", async () => {
  const { port } = await started([metrics], { maxHeadBytes: 1_000 });
  expect(await exchange(port, `GET /metrics HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(2_000)}\r\n\r\n`)).toMatch(
    /^HTTP\/1\.1 431 /,
  );
  const hasty = await started([metrics], { headTimeoutMs: 100 });
  expect(await exchange(hasty.port, "GET /metrics HTTP/1.1\r\nHost: a\r\n")).toMatch(/^HTTP\/1\.1 408 /);
});

it("hands a CONNECT to the daemon with the bytes that followed it, and closes it where nobody takes it", async () => {
  const taking = await started([], {
    onConnect: (request, socket, head) => {
      socket.end(`HTTP/1.1 200 OK\r\n\r\n${request.url} ${head.toString()}`);
    },
  });
  expect(await exchange(taking.port, "CONNECT cluster:1 HTTP/1.1\r\nHost: a\r\n\r\nmore")).toBe(
    "HTTP/1.1 200 OK\r\n\r\ncluster:1 more",
  );
  const { port } = await started([metrics]);
  expect(await exchange(port, "CONNECT cluster:1 HTTP/1.1\r\nHost: a\r\n\r\n")).toBe("");
});

it("hands an Upgrade to the daemon, and answers it like any request where nobody takes it", async () => {
  const upgrade = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: x\r\n\r\n";
  const taking = await started([metrics], {
    onUpgrade: (_, socket) => void socket.end("HTTP/1.1 101 Switching\r\n\r\n"),
  });
  expect(await exchange(taking.port, upgrade)).toMatch(/^HTTP\/1\.1 101 /);
  const { port } = await started([metrics]);
  expect(await exchange(port, upgrade)).toMatch(/^HTTP\/1\.1 200 [\s\S]*up 1/);
});

it("close lets a request end, closes its connection and takes no new one", async () => {
  let answer: (status: number) => void = () => {};
  const begun = Promise.withResolvers<void>();
  const slow: Route = {
    method: "GET",
    path: "/slow",
    handle: () => {
      begun.resolve();
      return new Promise((resolve) => {
        answer = (status) => resolve({ status, body: "done" });
      });
    },
  };
  const { server, port, url } = await started([slow]);
  const response = fetch(`${url}/slow`);
  await begun.promise;
  const closed = server.close({ graceMs: 60_000 });
  expect(server.close()).toBe(closed);
  await expect(fetch(`${url}/slow`)).rejects.toThrow();
  answer(200);
  expect(await (await response).text()).toBe("done");
  await closed;
  await expect(server.listen({ host: "127.0.0.1", port })).rejects.toThrow(/the server was closed/);
});

it("close cuts what is left after its grace, tunnels too, and tells routes that their client is gone", async () => {
  const gone = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const hanging: Route = {
    method: "GET",
    path: "/hang",
    handle: ({ signal }) => {
      signal.addEventListener("abort", () => gone.resolve());
      begun.resolve();
      return new Promise(() => {});
    },
  };
  const { server, port, url } = await started([hanging], {
    onConnect: (_, socket) => {
      socket.on("error", () => {});
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
    },
  });
  const request = fetch(`${url}/hang`).catch((error: unknown) => error);
  const tunnel = connect(port, "127.0.0.1", () => tunnel.write("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"));
  tunnel.on("error", () => {});
  await Promise.all([once(tunnel, "data"), begun.promise]);
  const ended = once(tunnel, "close");
  await server.close({ graceMs: 10 });
  await Promise.all([ended, gone.promise]);
  expect(await request).toBeInstanceOf(Error);
});

it("a port that is taken is an error that says what to do", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  const server = createHttpServer({ routes: [] });
  const error = await server.listen({ host: "127.0.0.1", port }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ListenError);
  expect((error as Error).message).toBe(
    `cannot listen on 127.0.0.1:${port}: the port is taken; stop the process that has it, or choose another port`,
  );
  taken.close();
});
