import { CellSocket, createFetch, Fleet } from "@cellkit/client";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { fleet, TestingOptionError, until } from "../../src/index.ts";
import { exchange, failureOf } from "../support/call.ts";

const authority = "http://app.internal";
const get = (path = "/") => `GET ${path} HTTP/1.1\r\nhost: app.internal\r\n\r\n`;
const refusalBody = '{"ok":false,"draining":true}';

describe("a node", () => {
  it("serves, refuses exactly as celld while it drains, and keeps its address over a restart", async () => {
    await using it = await fleet({ nodeCount: 1 });
    const [node] = it.nodes;
    if (node === undefined) throw new TypeError("no node");
    const { url } = node;
    const answer = await fetch(`${url}/a`);
    expect(await answer.json()).toEqual({ node: "node-0", method: "GET", path: "/a" });
    expect((await fetch(`${url}/__celld/health?x`)).status).toBe(200);
    await node.drain();
    expect(node.state).toBe("draining");
    const refused = (await exchange(url, get("/a"))).toString();
    expect(refused).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
    expect(refused).toMatch(/\r\nretry-after: 1\r\n/i);
    expect(refused).toMatch(/\r\nconnection: close\r\n/i);
    expect(refused.endsWith(`\r\n\r\n${refusalBody}`)).toBe(true);
    expect((await exchange(url, get("/__celld/health"))).toString()).toMatch(
      / 503 .*\r\n\r\n\{"ok":false\}$/s,
    );
    expect([node.requestCount, node.refusedCount]).toEqual([1, 1]);
    await node.stop();
    expect(node.state).toBe("stopped");
    expect(await exchange(url, get())).toHaveLength(0);
    expect([node.requestCount, node.refusedCount, node.socketCount]).toEqual([0, 0, 0]);
    await node.restart();
    expect(node.url).toBe(url);
    expect((await fetch(url)).status).toBe(200);
  });

  it("lets a request in flight end during a drain, and cuts it in a kill", async () => {
    const waiting = Promise.withResolvers<void>();
    await using it = await fleet({
      nodeCount: 2,
      app: async (_request, response) => {
        await waiting.promise;
        response.end("late");
      },
    });
    const [drained, killed] = it.nodes;
    const [first, second] = it.endpoints.map((url) => fetch(url));
    const lost = failureOf(second ?? Promise.resolve());
    await until("both requests", () => it.nodes.every(({ requestCount }) => requestCount === 1));
    const gone = drained?.drain();
    await killed?.kill();
    await lost;
    waiting.resolve();
    expect(await (await first)?.text()).toBe("late");
    await gone;
  });

  it("closes WebSockets with 1012 when it drains, and cuts them when it is killed", async () => {
    await using it = await fleet({ nodeCount: 2 });
    const echoes: string[] = [];
    const closes: unknown[] = [];
    for (const node of it.nodes) {
      const socket = new WebSocket(node.url.replace("http", "ws"));
      socket.on("message", () => echoes.push(node.name));
      socket.on("close", (code, reason) => closes.push([code, reason.toString()]));
      socket.on("error", () => undefined);
      await new Promise((resolve) => socket.once("open", resolve));
      socket.send("hello");
      await until("its echo", () => echoes.at(-1) === node.name);
    }
    expect(it.nodes.map(({ socketCount }) => socketCount)).toEqual([1, 1]);
    await it.nodes[0]?.drain();
    await until("the close frame", () => closes.length === 1);
    await it.nodes[1]?.kill();
    await until("the cut", () => closes.length === 2);
    expect(closes).toEqual([
      [1012, "node draining"],
      [1006, ""],
    ]);
  });

  it("that is not well says so in its health, and goes on serving", async () => {
    await using it = await fleet({ nodeCount: 1 });
    const [node] = it.nodes;
    if (node === undefined) throw new TypeError("no node");
    node.healthy = false;
    expect((await fetch(`${node.url}/__celld/health`)).status).toBe(503);
    expect((await fetch(node.url)).status).toBe(200);
  });
});

describe("@cellkit/client on it", () => {
  it("loses no request while every node is drained and restarted", async () => {
    await using it = await fleet();
    await using client = new Fleet({ authority, endpoints: [...it.endpoints] });
    const call = createFetch(client);
    let isRolled = false;
    const rolled = it.roll().finally(() => {
      isRolled = true;
    });
    let count = 0;
    while (!isRolled || count < 20) {
      const answer = await call(`/${count++}`, { method: "POST", body: "x" });
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
    }
    await rolled;
  });

  it("moves a socket from a node that drains to another", async () => {
    await using it = await fleet({ nodeCount: 2, socket: (socket, _request, node) => socket.send(node) });
    await using client = new Fleet({ authority, endpoints: [...it.endpoints] });
    const socket = new CellSocket(client, "/room");
    const nodes: unknown[] = [];
    for await (const name of socket) {
      nodes.push(name);
      if (nodes.length === 2) break;
      await it.nodes.find((node) => node.name === name)?.stop();
    }
    await socket.close();
    expect(new Set(nodes)).toEqual(new Set(["node-0", "node-1"]));
  });
});

it.each([0, 101, 1.5])("%d nodes are refused", async (nodeCount) => {
  expect(await failureOf(fleet({ nodeCount }))).toBeInstanceOf(TestingOptionError);
});
