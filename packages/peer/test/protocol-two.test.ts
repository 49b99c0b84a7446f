import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { RequestVerifier } from "../src/core/verifier.ts";
import {
  PeerNoAnswerError,
  PeerOptionError,
  PeerUnreachableError,
  PeerVersionError,
  StaleOwnerError,
} from "../src/errors.ts";
import { callProtocol2, type ProtocolTwoAnswer, type ProtocolTwoNode } from "../src/protocol-two.ts";
import { fleetKey } from "./support/fake-node.ts";
import { nobodysAddress } from "./support/nobody.ts";
import { pairsOf } from "./support/pairs.ts";

const cell = { scope: `Room:${"ab".repeat(32)}`, name: "lobby" };
const versioned = { "x-cells-peer-version": "2" };
const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** What an owner was sent, once its signature was verified. */
interface Envelope {
  target: string;
  name: string | null;
  url: string;
  method: string;
  bodyBase64?: string;
  headers: Array<[string, string]>;
  requestId: string | null;
  capacityHandoff: boolean;
}

/** An owner that verifies as every node does, then answers as the test says. */
async function owner(
  answer: (envelope: Envelope, response: ServerResponse) => void,
): Promise<{ node: ProtocolTwoNode; received: Envelope[] }> {
  const verifier = new RequestVerifier({ keys: [fleetKey], version: 2, self: "node-a" });
  const received: Envelope[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method = "", url: target = "", rawHeaders } = request;
    const verdict = verifier.verify({ method, target, headers: pairsOf(rawHeaders), body }, Date.now());
    if (!verdict.ok) {
      const stale = verdict.staleOwner ? { "x-cells-route-error": "stale-owner" } : {};
      response.writeHead(verdict.status, { ...versioned, ...stale }).end(verdict.message);
      return;
    }
    const envelope: Envelope = { target, ...JSON.parse(body.toString()) };
    received.push(envelope);
    answer(envelope, response);
  };
  const server = createServer((request, response) => void handle(request, response)).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { node: { node: "node-a", address: { host: "127.0.0.1", port } }, received };
}

async function response(answer: Promise<ProtocolTwoAnswer>): Promise<Response> {
  const got = await answer;
  if (got.kind !== "response") throw new Error("a socket was accepted");
  return got.response;
}

it("a request reaches the owner whole: its envelope has every member, and the signature covers it", async () => {
  const { node, received } = await owner((_, reply) => reply.writeHead(200, versioned).end("hi"));
  const request = new Request("https://example.com/a?b", {
    method: "PUT",
    body: new Uint8Array([0, 255, 10]),
    headers: { "x-one": "1" },
  });
  const requestId = "0".repeat(31).concat("7");
  const answer = await response(
    callProtocol2(node, cell, request, { key: fleetKey, requestId, capacityHandoff: true }),
  );
  expect(await answer.text()).toBe("hi");
  expect(received).toEqual([
    {
      target: `/__do/${cell.scope}`,
      name: "lobby",
      url: "https://example.com/a?b",
      method: "PUT",
      bodyBase64: "AP8K",
      headers: [["x-one", "1"]],
      requestId,
      capacityHandoff: true,
    },
  ]);
});

it("a request without a body, a name or an id says so", async () => {
  const { node, received } = await owner((_, reply) => reply.writeHead(204, versioned).end());
  const answer = await response(
    callProtocol2(node, { ...cell, name: undefined }, new Request("http://cell/"), { key: fleetKey }),
  );
  expect(answer.status).toBe(204);
  expect(received[0]).toMatchObject({ name: null, requestId: null, method: "GET", capacityHandoff: false });
  expect(received[0]).not.toHaveProperty("bodyBase64");
});

it("the answer streams, keeps its headers, and loses what only nodes may say and what is not visible", async () => {
  const { node } = await owner((_, reply) => {
    reply.writeHead(201, {
      ...versioned,
      "x-celld-body-stream": "1",
      "x-cells-anything": "1",
      "x-accent": "caf\u00e9",
      "set-cookie": ["a=1", "b=2"],
    });
    reply.write("one,");
    setImmediate(() => reply.end("two"));
  });
  const answer = await response(callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey }));
  expect(answer.status).toBe(201);
  expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  expect([...answer.headers.keys()].filter((name) => name.startsWith("x-"))).toEqual([]);
  expect(await answer.text()).toBe("one,two");
});

it("a 200 with a WebSocket's target is a socket, not an answer", async () => {
  const target = JSON.stringify({ id: 9, scope: cell.scope });
  const { node } = await owner((_, reply) =>
    reply.writeHead(200, { ...versioned, "x-celld-ws-target": target }).end(),
  );
  expect(await callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey })).toEqual({
    kind: "socket",
    target: { id: 9, scope: cell.scope },
  });
});

it.each(['{"id":9,"scope":"Other:1"}', "{", '{"id":-1}'])(
  "a WebSocket's target %s is refused",
  async (target) => {
    const { node } = await owner((_, reply) =>
      reply.writeHead(200, { ...versioned, "x-celld-ws-target": target }).end(),
    );
    const call = callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey });
    await expect(call).rejects.toThrow(PeerNoAnswerError);
  },
);

describe("an answer that proves that nothing ran", () => {
  it("409 with the marker", async () => {
    const { node } = await owner((_, reply) =>
      reply.writeHead(409, { ...versioned, "x-cells-route-error": "stale-owner" }).end("stale route"),
    );
    const call = callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey });
    await expect(call).rejects.toThrow(StaleOwnerError);
  });

  it("another node at the address", async () => {
    const { node, received } = await owner((_, reply) => reply.end());
    const call = callProtocol2({ ...node, node: "node-b" }, cell, new Request("http://cell/"), {
      key: fleetKey,
    });
    await expect(call).rejects.toThrow(StaleOwnerError);
    expect(received).toEqual([]);
  });

  it("no connection", async () => {
    const { node } = await owner(() => {});
    const nobody = { ...node, address: nobodysAddress };
    const call = callProtocol2(nobody, cell, new Request("http://cell/"), { key: fleetKey });
    await expect(call).rejects.toThrow(PeerUnreachableError);
  });
});

it("the marker on any other status is the application's own affair: the call is not taken for one that did not run", async () => {
  const { node, received } = await owner((_, reply) =>
    reply.writeHead(200, { ...versioned, "x-cells-route-error": "stale-owner" }).end("ran"),
  );
  const answer = await response(callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey }));
  expect(await answer.text()).toBe("ran");
  expect(answer.headers.has("x-cells-route-error")).toBe(false);
  expect(received).toHaveLength(1);
});

it.each([
  ["no version", {}, undefined],
  ["another version", { "x-cells-peer-version": "5" }, "5"],
])("an answer with %s is refused before its status is looked at", async (_, headers, version) => {
  const { node } = await owner((_envelope, reply) => reply.writeHead(200, headers).end());
  const call = callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey });
  await expect(call).rejects.toThrow(PeerVersionError);
  await expect(call).rejects.toMatchObject({ version });
});

it("an owner that goes away in the middle fails the body, and nothing is sent again", async () => {
  const { node, received } = await owner((_, reply) => {
    reply.writeHead(200, { ...versioned, "content-length": "100" });
    reply.write("half", () => reply.destroy());
  });
  const answer = await response(callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey }));
  await expect(answer.text()).rejects.toThrow();
  expect(received).toHaveLength(1);
});

it("an owner that goes away before its answer is an unknown outcome, and nothing is sent again", async () => {
  const { node, received } = await owner((_, reply) => reply.destroy());
  const call = callProtocol2(node, cell, new Request("http://cell/"), { key: fleetKey });
  await expect(call).rejects.toThrow(PeerNoAnswerError);
  expect(received).toHaveLength(1);
});

it("the caller's abort reaches the owner as a connection that goes", async () => {
  const gone = Promise.withResolvers<void>();
  const aborting = new AbortController();
  const { node } = await owner((_, reply) => {
    reply.on("close", () => gone.resolve());
    aborting.abort(new DOMException("given up", "AbortError"));
  });
  const call = callProtocol2(node, cell, new Request("http://cell/"), {
    key: fleetKey,
    signal: aborting.signal,
  });
  await expect(call).rejects.toThrow("given up");
  await gone.promise;
});

it("a body beyond the bound is refused before anything is sent", async () => {
  const { node, received } = await owner((_, reply) => reply.end());
  const request = new Request("http://cell/", { method: "POST", body: "12345" });
  const call = callProtocol2(node, cell, request, { key: fleetKey, maxBodyBytes: 4 });
  await expect(call).rejects.toThrow(PeerOptionError);
  expect(received).toEqual([]);
});

it("what is no scope is refused before anything is sent", async () => {
  const { node } = await owner((_, reply) => reply.end());
  const call = callProtocol2(node, { scope: "../x", name: undefined }, new Request("http://cell/"), {
    key: fleetKey,
  });
  await expect(call).rejects.toThrow(PeerOptionError);
});
