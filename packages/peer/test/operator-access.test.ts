import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { signRequest } from "../src/core/sign.ts";
import { RequestVerifier } from "../src/core/verifier.ts";
import { judgeOperator, type OperatorAccess } from "../src/operator-access.ts";
import { readControlBody } from "../src/received-head.ts";
import { testKey } from "./support/records.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A server whose every request is judged; `from` stands for the connection's address. */
async function serve({ from, ...access }: Partial<OperatorAccess> & { from?: string } = {}) {
  const verifier = new RequestVerifier({ self: "owner", keys: [testKey], version: 5 });
  const server = createServer(async (incoming, response) => {
    if (from !== undefined) Object.defineProperty(incoming.socket, "remoteAddress", { value: from });
    const judged = await judgeOperator(incoming, () => readControlBody(incoming), { verifier, ...access });
    if (judged.ok) response.end(judged.body === undefined ? "let in" : `let in with ${judged.body.length}`);
    else response.writeHead(judged.status).end(judged.message);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return async (headers: Record<string, string> = {}, body = "") => {
    const asked = request({ host: "127.0.0.1", port, path: "/do/x", method: "POST", agent: false, headers });
    asked.end(body);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of answer) text += chunk;
    return [answer.statusCode, text];
  };
}

const sign = (change: { body?: string; destination?: string; target?: string; timeMs?: number } = {}) => ({
  ...signRequest({
    key: testKey,
    version: 5,
    method: "POST",
    target: "/do/x",
    source: "tester",
    destination: "owner",
    timeMs: Date.now(),
    nonce: randomBytes(16).toString("hex"),
    ...change,
    body: Buffer.from(change.body ?? ""),
  }),
});
const refused = "peer authentication failed";

describe("on a loopback connection", () => {
  it.each(["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])("%s needs no signature", async (from) => {
    expect(await (await serve({ from }))()).toEqual([200, "let in"]);
  });

  it.each(["127.0.0.1:8081", "localhost", "LOCALHOST:8081", "[::1]:8081", "10.0.0.7"])(
    "takes the Host %s",
    async (host) => {
      expect((await (await serve())({ host }))[0]).toBe(200);
    },
  );

  it.each(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "localhost.", "1"])(
    "refuses the Host %j: a page may have had its own name resolved to this machine",
    async (host) => {
      expect((await (await serve())({ host }))[0]).toBe(403);
    },
  );

  it.each([
    { origin: "http://evil.example" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-origin" },
  ])("refuses what a page sends: %j", async (headers) => {
    expect((await (await serve())(headers))[0]).toBe(403);
    expect((await (await serve({ open: true }))(headers))[0]).toBe(403);
  });

  it("takes what somebody has typed into a browser", async () => {
    expect((await (await serve())({ "sec-fetch-site": "none" }))[0]).toBe(200);
  });

  it("judges a signature that is there, and does not fall back to the address", async () => {
    const ask = await serve();
    expect(await ask({ ...sign(), "x-cells-peer-signature": "0".repeat(64) })).toEqual([401, refused]);
    expect((await ask({ "x-cells-peer-version": "2" }))[0]).toBe(426);
  });
});

describe("on any other connection", () => {
  it.each(["10.0.0.8", "fd00::2", "::ffff:10.0.0.8", "::", "0.0.0.0", "128.0.0.1"])(
    "%s needs a signature, whatever a header says",
    async (from) => {
      const ask = await serve({ from });
      expect(await ask()).toEqual([401, refused]);
      const headers = {
        "x-forwarded-for": "127.0.0.1",
        forwarded: "for=127.0.0.1",
        "x-real-ip": "127.0.0.1",
      };
      expect(await ask({ ...headers, host: "127.0.0.1" })).toEqual([401, refused]);
      expect(await ask(sign())).toEqual([200, "let in with 0"]);
    },
  );

  it("a signature counts once, for this body, path, time and node", async () => {
    const ask = await serve({ from: "10.0.0.8" });
    const signed = sign({ body: "hello" });
    expect(await ask(signed, "hello")).toEqual([200, "let in with 5"]);
    expect((await ask(signed, "hello"))[0]).toBe(409);
    expect(await ask(sign({ body: "hello" }), "other")).toEqual([401, refused]);
    expect((await ask(sign({ target: "/do/y" })))[0]).toBe(401);
    expect((await ask(sign({ timeMs: Date.now() - 31_000 })))[0]).toBe(401);
    expect((await ask(sign({ destination: "other" })))[0]).toBe(409);
  });

  it("a body that is too large is 413, and only a signed head makes the node read one", async () => {
    const ask = await serve({ from: "10.0.0.8" });
    const body = "x".repeat(65_537);
    expect((await ask(sign({ body }), body))[0]).toBe(413);
    expect((await ask({}, body))[0]).toBe(401);
  });

  it("is let in where the API is open", async () => {
    expect(await (await serve({ from: "10.0.0.8", open: true }))({ host: "node.example" })).toEqual([
      200,
      "let in",
    ]);
  });

  it("gets 503 for a signature while the node has no key", async () => {
    expect((await (await serve({ verifier: undefined }))(sign()))[0]).toBe(503);
  });
});
