// What an application sees, with our entry module and without it: the same. The second half holds what the entry module is
// there for.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { type BareWorkerd, startBareWorkerd } from "./support/bare-workerd.ts";
import type { TestWorker } from "./support/bundles.ts";
import { counted } from "./support/counts.ts";
import { curiousWorker } from "./support/curious-worker.ts";
import { startFleet, type TestFleet, type TestNode } from "./support/fleet.ts";
import { type Ask, ask, askJson } from "./support/http.ts";
import { openSocket } from "./support/sockets.ts";

const hasBody = "x".repeat(100_000);

describe.each([
  ["today's compatibility date", { compatibilityDate: "2026-10-01" }],
  ["an old compatibility date", { compatibilityDate: "2024-09-23" }],
  [
    "the new module registry",
    { compatibilityDate: "2026-10-01", compatibilityFlags: ["new_module_registry"] },
  ],
  ["nodejs_compat", { compatibilityDate: "2026-10-01", compatibilityFlags: ["nodejs_compat"] }],
])("with %s", (_, options) => {
  const worker: TestWorker = {
    source: curiousWorker,
    classes: ["Room", "Plain", "Fields"],
    vars: { GREETING: "hi" },
    ...options,
  };
  let fleet: TestFleet;
  let node: TestNode;
  let bare: BareWorkerd;

  beforeAll(async () => {
    fleet = await startFleet();
    await fleet.deploy(worker);
    [node, bare] = await Promise.all([fleet.node({ cfBlobHeader: "test-cf" }), startBareWorkerd(worker)]);
  });
  afterAll(async () => {
    await Promise.all([fleet[Symbol.asyncDispose](), bare[Symbol.asyncDispose]()]);
  });

  /** The same request to both. */
  async function both(path: string, request: Ask = {}) {
    const [ours, theirs] = await Promise.all([ask(node.engine, path, request), ask(bare, path, request)]);
    // The only header that differs between two answers of the same Worker.
    for (const { headers } of [ours, theirs]) delete headers.date;
    return { ours, theirs };
  }

  it.each([
    ["the handler's this, env, ctx and exports", "/self"],
    ["a cell's class, prototype chain, names and private members", "/room"],
    ["a cell without DurableObject", "/plain"],
    ["a cell whose handlers are fields", "/fields"],
    ["JS-RPC: methods, properties, RPC targets, errors", "/rpc"],
    ["JS-RPC to a class that has none", "/plain-rpc"],
    ["named entrypoints and ctx.exports", "/exports"],
    ["globals", "/globals"],
    ["ids", "/id"],
  ])("shows the same of %s", async (_name, path) => {
    const { ours, theirs } = await both(path);
    expect(JSON.parse(ours.text)).toEqual(JSON.parse(theirs.text));
    expect(ours.status).toBe(200);
  });

  const cf = JSON.stringify({ clientIp: "192.0.2.7", nested: { a: [1] } });
  it.each<[string, Ask]>([
    ["a GET", { headers: { "test-cf": cf, cookie: "a=1", "x-other": ["1", "2"] } }],
    ["a small POST", { method: "POST", body: "hello", headers: { "content-type": "text/plain" } }],
    ["a POST of 100 kB", { method: "POST", body: hasBody, headers: { "test-cf": cf } }],
    ["a POST of 2 MB", { method: "POST", body: "x".repeat(2_000_000) }],
    ["a POST in chunks", { method: "POST", body: "hello", headers: { "transfer-encoding": "chunked" } }],
    ["a GET of declared nothing", { method: "GET", headers: { "content-length": "0" } }],
    ["a GET with a body", { method: "GET", body: "hello", headers: { "content-length": "5" } }],
    ["a POST of nothing", { method: "POST", headers: { "content-length": "0" } }],
    ["a DELETE with a body", { method: "DELETE", body: "x", headers: { "content-length": "1" } }],
    ["a method of its own", { method: "PROPFIND" }],
  ])("gives the same request to the handler for %s", async (_name, request) => {
    const { ours, theirs } = await both("/echo?q=%20", request);
    expect(JSON.parse(ours.text)).toEqual(JSON.parse(theirs.text));
  });

  it.each(["/answer", "/empty", "/redirect", "/stream", "/nowhere"])(
    "passes the answer of %s on as it is",
    async (path) => {
      const { ours, theirs } = await both(path);
      expect(ours).toEqual(theirs);
    },
  );

  it("runs alarms", async () => {
    const alarmed = async (engine: { publicSocket: string | undefined }) => {
      await askJson(engine, "/alarm");
      return until("the alarm ran", async () => (await askJson(engine, "/alarmed")) || undefined);
    };
    expect(await alarmed(node.engine)).toEqual(await alarmed(bare));
  });
});

describe("forms of the default export", () => {
  const start = `import { WorkerEntrypoint } from "cloudflare:workers";`;
  it.each([
    [
      "an object that uses this",
      `export default { text: "ok", fetch() { return new Response(this.text); } };`,
    ],
    [
      "an object whose fetch comes later",
      `const d = {}; export default d; d.fetch = () => new Response("ok");`,
    ],
    [
      "an entrypoint class",
      `${start} export default class extends WorkerEntrypoint { #t = "ok"; fetch() { return new Response(this.#t + (this.env ? "" : "!")); } }`,
    ],
    [
      "an entrypoint class with a field",
      `${start} export default class A extends WorkerEntrypoint { fetch = () => new Response("ok"); }`,
    ],
    [
      "an instance of a class",
      `class A { #t = "ok"; fetch() { return new Response(this.#t); } } export default new A();`,
    ],
    [
      "a function that answers late",
      `export default { async fetch() { await scheduler.wait(1); return new Response("ok"); } };`,
    ],
  ])("%s answers as in a bare workerd", async (_, source) => {
    await using fleet = await startFleet();
    await fleet.deploy({ source });
    const { engine } = await fleet.node();
    await using bare = await startBareWorkerd({ source });
    expect((await ask(engine, "/")).text).toBe("ok");
    expect((await ask(bare, "/")).text).toBe("ok");
  });

  it.each([
    ["no default export", "export class Room {}"],
    ["an object without fetch", "export default {};"],
    ["a function", `export default function () { return new Response("ok"); }`],
    ["a class of its own", `export default class { fetch() { return new Response("ok"); } }`],
  ])("%s has no handler, as workerd says", async (_, source) => {
    await using fleet = await startFleet();
    await fleet.deploy({ source });
    const { engine } = await fleet.node();
    const { status, text } = await ask(engine, "/");
    expect([status, text]).toEqual([500, "Worker failed: Handler does not export a fetch() function."]);
  });
});

describe("what the entry module adds", () => {
  let fleet: TestFleet;
  let node: TestNode;

  beforeAll(async () => {
    fleet = await startFleet();
    await fleet.deploy({
      source: `
        import { DurableObject } from "cloudflare:workers";
        export class Room extends DurableObject {
          async fetch(request) {
            if (request.url.endsWith("/reserved")) return new Response("body", { status: 201, headers: reserved });
            const [client, server] = Object.values(new WebSocketPair());
            server.accept();
            return new Response(null, { status: 101, webSocket: client, headers: { "sec-websocket-protocol": "chat", "x-celld-x": "1", kept: "yes" } });
          }
        }
        const reserved = { "X-Cells-A": "1", "x-celld-b": "2", "Cellkit-Outcome": "not-run", "Proxy-Status": "x", "x-cell": "kept" };
        export default {
          async fetch(request, env, ctx) {
            const { pathname } = new URL(request.url);
            if (pathname === "/throws") throw new TypeError("boom");
            if (pathname === "/rejects") return Promise.reject("a string");
            if (pathname === "/undefined") return undefined;
            if (pathname === "/reserved") return new Response("body", { status: 201, headers: reserved });
            if (pathname === "/of-a-cell") return env.ROOM.get(env.ROOM.idFromName("a")).fetch("http://cell/reserved");
            if (pathname === "/socket") return env.ROOM.get(env.ROOM.idFromName("a")).fetch(request);
            if (pathname === "/own-socket") {
              const [client, server] = Object.values(new WebSocketPair());
              server.accept();
              server.addEventListener("message", (event) => server.send(event.data));
              return new Response(null, { status: 101, webSocket: client });
            }
            return new Response(pathname);
          },
        };`,
      classes: ["Room"],
    });
    node = await fleet.node();
  });
  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
  });

  it.each([
    ["/throws", "Worker failed: boom"],
    ["/rejects", "Worker failed: a string"],
    ["/undefined", "Worker failed: Incorrect type for Promise: the Promise did not resolve to 'Response'."],
  ])("answers 500 when the Worker fails (%s)", async (path, text) => {
    const answer = await ask(node.engine, path);
    expect([answer.status, answer.text]).toEqual([500, text]);
  });

  it("writes the Worker's exception to the node's log, and counts it", async () => {
    const before = await counted(node.engine);
    await ask(node.engine, "/throws");
    await until("the stack is logged", () =>
      node.log.some(({ message }) => message.includes("TypeError: boom")),
    );
    const after = await counted(node.engine);
    expect((after.requests ?? 0) - (before.requests ?? 0)).toBe(1);
    expect((after.requestsFailed ?? 0) - (before.requestsFailed ?? 0)).toBe(1);
    expect(after.requestsInFlight).toBe(0);
  });

  it.each([
    ["its own", "/reserved"],
    ["an answer that it got from a cell", "/of-a-cell"],
  ])("takes reserved headers out of %s, and nothing else", async (_, path) => {
    const { status, text, headers } = await ask(node.engine, path);
    expect([status, text, headers["x-cell"]]).toEqual([201, "body", "kept"]);
    for (const name of ["x-cells-a", "x-celld-b", "cellkit-outcome", "proxy-status"]) {
      expect(headers).not.toHaveProperty(name);
    }
  });

  it("keeps an upgrade an upgrade, its protocol and headers included", async () => {
    const { socket, closed, headers } = await openSocket(node.engine, "/socket", ["chat"]);
    expect([socket.protocol, headers["kept"]]).toEqual(["chat", "yes"]);
    // The answer came from a cell: its headers cannot be changed, so it was copied, socket and all.
    expect(headers).not.toHaveProperty("x-celld-x");
    socket.close(3000, "bye");
    await closed;
  });

  it("leaves sockets of the Worker itself alone", async () => {
    const { socket, ask: askSocket } = await openSocket(node.engine, "/own-socket");
    expect(await askSocket("hi")).toBe("hi");
    expect((await node.engine.closeCells()).regularSockets).toBe(0);
    socket.terminate();
  });
});
