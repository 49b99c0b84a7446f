// What comes out of a peer's tunnel reaches the cell that it names, and nothing else of the node.
import { createHash, createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { counted } from "./support/counts.ts";
import { startFleet, type TestFleet, type TestNode } from "./support/fleet.ts";
import { type Ask, ask } from "./support/http.ts";
import { upgrade } from "./support/upgrade.ts";

const source = `
import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") throw new Error("no");
    if (pathname === "/evil") return new Response("done", { status: 409, headers: {
      "x-cells-route-error": "stale-owner", "x-cells-peer-version": "9", "x-celld-ws-target": "{}",
      "cellkit-outcome": "not-run", "proxy-status": "x", "x-own": "kept" } });
    if (pathname === "/socket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client,
        headers: { "sec-websocket-protocol": "chat", "x-own": "kept", "x-cells-route-error": "stale-owner" } });
    }
    return Response.json({ url: request.url, method: request.method, headers: [...request.headers],
      name: this.ctx.id.name ?? null, body: await request.text() });
  }
  webSocketMessage(socket, message) { socket.send("echo " + message); }
  add(a, b) { return a + b; }
  none() {}
  fail() { throw new Error("method failed"); }
  callback() { return () => 1; }
}
export class Lamp extends DurableObject {}
export class Plain { fetch() { return new Response("plain"); } }
export default { fetch() { return new Response("public"); } };
`;
const classKey = (name: string) => createHash("sha256").update(`cells:v1:4:chat:${name}`).digest();
const half = (key: Uint8Array, of: string | Uint8Array) =>
  createHmac("sha256", key).update(of).digest().subarray(0, 16);
function scopeOf(className: string, name: string): string {
  const key = classKey(className);
  const first = half(key, name);
  return `${className}:${Buffer.concat([first, half(key, first)]).toString("hex")}`;
}
const scope = scopeOf("Room", "a");

let fleet: TestFleet;
let node: TestNode;

beforeAll(async () => {
  fleet = await startFleet();
  await fleet.deploy({ source, classes: ["Room", "Lamp", "Plain"], namespaces: { ROOM: "Room" } });
  node = await fleet.node();
});
afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
});

/** What a tunnel of kind `do` sends. */
async function call(path: string, { headers, ...options }: Ask = {}) {
  const answer = await ask({ publicSocket: node.engine.peerSocket }, `http://rooms.example:81${path}`, {
    headers: { "x-cells-scope": scope, ...headers },
    ...options,
  });
  expect(answer.headers["x-cells-peer-version"]).toBe("5");
  return answer;
}

/** What a tunnel of kind `rpc` sends. */
async function method(
  name: string | undefined,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
) {
  const answer = await ask({ publicSocket: node.engine.peerRpcSocket }, "/", {
    method: "POST",
    body,
    headers: {
      "x-cells-scope": scope,
      "content-type": "application/json",
      ...(name === undefined ? {} : { "x-cells-rpc-method": name }),
      ...headers,
    },
  });
  expect(answer.headers["x-cells-peer-version"]).toBe("5");
  return answer;
}

describe("a tunnel of kind do", () => {
  it("gives the cell the request as the application made it, without the fields of nodes", async () => {
    const { status, text } = await call("/x%2Fy?q=1", {
      method: "POST",
      body: "hello",
      headers: {
        host: "rooms.example:81",
        "x-cells-do-name": "a",
        "x-cells-request-id": "0".repeat(32),
        "x-cells-capacity-handoff": "1",
        "x-celld-odd": "1",
        "cellkit-close-sockets": "t 1000 x",
        "x-own": "kept",
      },
    });
    expect(status).toBe(200);
    const seen = JSON.parse(text);
    expect(seen).toMatchObject({
      url: "http://rooms.example:81/x%2Fy?q=1",
      method: "POST",
      name: "a",
      body: "hello",
    });
    expect(Object.fromEntries(seen.headers)).toMatchObject({ host: "rooms.example:81", "x-own": "kept" });
    expect(seen.headers.flat().filter((text: string) => /^(x-cell|cellkit-)/.test(text))).toEqual([]);
  });

  it("takes the fields of nodes out of the cell's answer", async () => {
    const { status, headers, text } = await call("/evil");
    expect([status, text, headers["x-own"]]).toEqual([409, "done", "kept"]);
    for (const name of ["x-cells-route-error", "x-celld-ws-target", "cellkit-outcome", "proxy-status"])
      expect(headers[name]).toBeUndefined();
  });

  it("carries a body larger than what is collected", async () => {
    const body = "x".repeat(3 * 1024 * 1024);
    const { text } = await call("/", { method: "POST", body });
    expect(JSON.parse(text).body).toHaveLength(body.length);
  });

  it("opens a WebSocket, with the cell's own fields in the 101", async () => {
    const socket = await upgrade(node.engine.peerSocket, "http://rooms.example/socket", {
      "x-cells-scope": scope,
      "sec-websocket-protocol": "chat",
    });
    expect(socket.status).toBe(101);
    expect(socket.headers).toMatchObject({
      "x-cells-peer-version": "5",
      "sec-websocket-protocol": "chat",
      "x-own": "kept",
    });
    expect(socket.headers["x-cells-route-error"]).toBeUndefined();
    expect(await socket.echo("hi")).toBe("echo hi");
  });

  it("answers 500 when the cell accepts a socket that nobody asked for", async () => {
    const { status, text } = await call("/socket");
    expect(status).toBe(500);
    expect(text).toMatch(/^cell Worker failed: .*WebSocket/);
  });

  it("answers 500 for what the cell throws", async () => {
    expect(await call("/throw")).toMatchObject({ status: 500, text: "cell Worker failed: no" });
  });

  it.each([
    ["no scope", ""],
    ["a scope with a slash", "Room/x"],
    ["a scope of dots", ".."],
    ["a scope without id", "Room:"],
    ["an id of another class", `Room:${scopeOf("Lamp", "a").slice(5)}`],
  ])("answers 400 for %s", async (_, scope) => {
    const { status, text, headers } = await call("/", { headers: { "x-cells-scope": scope } });
    expect([status, text]).toEqual([400, '{"error":"malformed_cell_scope"}']);
    expect(headers["cellkit-outcome"]).toBe("not-run");
  });

  it.each(["Absent", "CellkitControl", "CellkitPublic", "default", "__proto__", "constructor"])(
    "answers 503 for the class %s, which has no cells",
    async (name) => {
      const headers = { "x-cells-scope": `${name}:${"0".repeat(64)}` };
      expect(await call("/", { headers })).toMatchObject({
        status: 503,
        text: "route failed: RuntimeFailed",
      });
    },
  );

  it("answers 500 when the name is not the name of the id", async () => {
    const { status, text } = await call("/", { headers: { "x-cells-do-name": "b" } });
    expect([status, text]).toEqual([500, "cell Worker failed: x-cells-do-name is not the name of this id"]);
  });

  it("answers 400 for a target that is a path", async () => {
    const { status } = await ask({ publicSocket: node.engine.peerSocket }, "/x", {
      headers: { "x-cells-scope": scope },
    });
    expect(status).toBe(400);
  });

  it("takes no method from a field of the request: an application could have sent it", async () => {
    const { text } = await call("/", {
      method: "POST",
      body: "[1,2]",
      headers: { "x-cells-rpc-method": "add" },
    });
    expect(JSON.parse(text)).toMatchObject({ body: "[1,2]" });
  });

  it("reaches nothing of the control entrypoint", async () => {
    expect(JSON.parse((await call("/state")).text).url).toBe("http://rooms.example:81/state");
    expect((await call("/ping", { headers: { "x-cells-scope": "" } })).status).toBe(400);
  });
});

describe("a tunnel of kind rpc", () => {
  it("calls the method", async () => {
    expect(await method("add", "[1,2]")).toMatchObject({ status: 200, text: "3" });
    expect(await method("none", "")).toMatchObject({ status: 200, text: "null" });
  });

  it.each([
    ["no method", undefined, "[]", 400, "RPC method header is missing"],
    ["arguments that are no list", "add", "{}", 400, "JSON RPC arguments are not an array"],
    ["arguments that are no JSON", "add", "[", 400, "JSON RPC arguments are not JSON"],
    ["arguments that are no UTF-8", "add", Uint8Array.of(0xff), 400, "JSON RPC arguments are not UTF-8"],
    ["a method that throws", "fail", "[]", 500, "RPC failed: method failed"],
    ["a method that is not there", "absent", "[]", 500, /^RPC failed: .*"absent"/],
    ["a result that is no JSON", "callback", "[]", 500, "RPC failed: the result is not JSON"],
    ["a method of the stub itself", "fetch", '["http://x/"]', 500, "RPC failed: fetch cannot be called"],
    ["another one", "toString", "[]", 500, "RPC failed: toString cannot be called"],
    ["a property of the stub", "id", "[]", 500, "RPC failed: id cannot be called"],
  ])("refuses %s", async (_, name, body, status, text) => {
    const answer = await method(name, body);
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(text);
  });

  it("answers 415 for V8's own serialisation, and 413 for more than 32 MiB", async () => {
    const octets = { "content-type": "application/octet-stream" };
    expect(await method("add", "x", octets)).toMatchObject({ status: 415 });
    expect(await method("add", Buffer.alloc(32 * 1024 * 1024 + 1, 0x20))).toMatchObject({ status: 413 });
  });

  it("answers 400 for a malformed scope", async () => {
    expect(await method("add", "[]", { "x-cells-scope": "../" })).toMatchObject({
      status: 400,
      text: '{"error":"malformed_cell_scope"}',
    });
  });
});

describe("locateCell", () => {
  it("says the node of a cell here, and of one on another node", async () => {
    const other = await fleet.node({ node: "other" });
    const near = scopeOf("Room", "near");
    expect(await node.engine.locateCell(near)).toEqual({ node: "test" });
    expect(await other.engine.locateCell(near)).toEqual({ node: "test" });
    expect((await counted(node.engine)).residents).toContain(near);
    await other.engine.stop();
  });

  it("says why it does not know", async () => {
    expect(await node.engine.locateCell(`Absent:${"0".repeat(64)}`)).toEqual({ problem: "class" });
    expect(await node.engine.locateCell(`Room:${"0".repeat(64)}`)).toEqual({ problem: "id" });
    expect(await node.engine.locateCell("Room")).toEqual({ problem: "class" });
  });

  it("knows a cell here whose class has no fetch()", async () => {
    expect(await node.engine.locateCell(scopeOf("Lamp", "x"))).toEqual({ node: "test" });
  });
});

it("has no sockets for peers once it is stopped", async () => {
  const other = await fleet.node();
  expect(other.engine.peerSocket).toBeDefined();
  await other.engine.stop();
  expect([other.engine.peerSocket, other.engine.peerRpcSocket]).toEqual([undefined, undefined]);
});
