import { FormData, Request } from "undici";
import { describe, expect, it } from "vitest";
import { attemptsOf } from "../src/attempts.ts";
import { createFetch } from "../src/create-fetch.ts";
import { alwaysFirst, failure, fleetOf } from "./support/fleet.ts";
import { startNode, startRawNode, until } from "./support/node-server.ts";

describe("createFetch", () => {
  const bodies: [string, () => NonNullable<RequestInit["body"]>, string, RegExp][] = [
    ["string", () => "text ü", "text ü", /^text\/plain/],
    ["Uint8Array", () => new Uint8Array([104, 105]), "hi", /^$/],
    ["Blob", () => new Blob(["blob"], { type: "a/b" }), "blob", /^a\/b$/],
    ["URLSearchParams", () => new URLSearchParams({ a: "1" }), "a=1", /^application\/x-www-form-urlencoded/],
  ];
  it.each(bodies)(
    "H28 POST of a %s reaches another node with the right body and length",
    async (_kind, body, text, type) => {
      await using a = await startNode("a");
      await using b = await startNode("b");
      a.draining = true;
      await using fleet = fleetOf([a, b], { internals: alwaysFirst });
      const response = await createFetch(fleet)("/path?q=1", { method: "POST", body: body() as string });
      expect(await response.text()).toBe("b");
      expect(b.seen).toMatchObject([{ url: "/path?q=1", body: text, headers: { host: "app.internal" } }]);
      expect(b.seen[0]?.headers["content-length"]).toBe(String(Buffer.byteLength(text)));
      expect(b.seen[0]?.headers["content-type"] ?? "").toMatch(type);
      expect(attemptsOf(response).map((attempt) => attempt.class)).toEqual(["refused", "answered"]);
    },
  );

  it("H28 POST of a string longer than what is kept of a stream is sent again all the same", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const body = "200 kB ".repeat(28_572);
    expect(await (await createFetch(fleet)("/", { method: "POST", body })).text()).toBe("b");
    expect(b.seen[0]?.body).toBe(body);
  });

  it("H28 POST of a form reaches another node with body and boundary as a pair", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const form = new FormData();
    form.set("name", "value");
    await (await createFetch(fleet)("/", { method: "POST", body: form })).text();
    const boundary = /boundary=(.+)$/.exec(b.seen[0]?.headers["content-type"] ?? "")?.[1] ?? "none";
    expect(b.seen[0]?.body.startsWith(`--${boundary}`)).toBe(true);
  });

  it("H29 a Request with a stream of 10 KiB is replayed from what was kept", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const text = "0123456789".repeat(1_024);
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < text.length; at += 1_000)
          controller.enqueue(Buffer.from(text.slice(at, at + 1_000)));
        controller.close();
      },
    });
    const request = new Request("http://app.internal/x", {
      method: "POST",
      body: stream as never,
      duplex: "half",
    });
    const response = await createFetch(fleet)(request);
    expect(await response.text()).toBe("b");
    expect(b.seen[0]?.body).toBe(text);
  });

  it("H52 a redirect to another origin is followed outside the fleet, a 303 has no body", async () => {
    await using a = await startNode("a");
    await using other = await startNode("other");
    a.respond = (seen, response) => {
      const location = seen.url === "/away" ? `${other.url}/there` : "/see";
      response
        .writeHead(seen.url === "/away" ? 307 : seen.url === "/post" ? 303 : 200, { location })
        .end("seen");
    };
    await using fleet = fleetOf([a]);
    const fetch = createFetch(fleet);
    expect(await (await fetch("/away", { method: "POST", body: "x" })).text()).toBe("other");
    expect(other.seen).toMatchObject([{ method: "POST", url: "/there", body: "x" }]);
    expect(await (await fetch("/post", { method: "POST", body: "x" })).text()).toBe("seen");
    expect(a.seen.at(-1)).toMatchObject({ method: "GET", url: "/see", body: "" });
  });

  it("resolves with a status, and rejects with a TypeError whose cause is the fleet's error", async () => {
    await using a = await startNode("a");
    await using deaf = await startRawNode((socket) => socket.destroy());
    a.respond = (_seen, response) => response.writeHead(503).end("busy");
    await using fleet = fleetOf([a]);
    const fetch = createFetch(fleet, { deadlineMs: 20_000 });
    expect((await fetch("/", { method: "POST", body: "x" })).status).toBe(503);
    await using broken = fleetOf([deaf]);
    const error = await failure(createFetch(broken)("/", { method: "POST", body: "x" }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.cause).toMatchObject({ code: "CELLKIT_CLIENT_AMBIGUOUS" });
    expect(attemptsOf(error)).toHaveLength(1);
  });

  it("rejects with the signal's reason, and takes the call's own options", async () => {
    await using a = await startRawNode(() => undefined);
    await using fleet = fleetOf([a]);
    const fetch = createFetch(fleet);
    const reason = new RangeError("enough");
    const abort = new AbortController();
    const asking = failure(fetch("/", { signal: abort.signal }));
    await until(() => a.requestCount === 1, "the request");
    abort.abort(reason);
    expect(await asking).toBe(reason);
    const late = await failure(fetch("/", { fleet: { deadlineMs: 50 } }));
    expect(late.cause).toMatchObject({ code: "CELLKIT_CLIENT_DEADLINE" });
  });

  it("H11 a refusal whose body is cut off ends the reading of that body with an error", async () => {
    await using a = await startRawNode((socket) => {
      const head = [
        "content-type: application/json",
        "connection: close",
        "content-length: 28",
        "cellkit-outcome: not-run",
      ];
      socket.end(`HTTP/1.1 503 Service Unavailable\r\n${head.join("\r\n")}\r\n\r\n{"ok":fal`);
    });
    await using fleet = fleetOf([a], { health: false, retry: { maxAttempts: 1 } });
    const response = await createFetch(fleet)("/", { method: "POST", body: "b" });
    expect(response.status).toBe(503);
    await expect(response.text()).rejects.toThrow();
  });
});
