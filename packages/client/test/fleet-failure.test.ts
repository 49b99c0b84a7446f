import { connect } from "node:net";
import { errors } from "undici";
import { describe, expect, it } from "vitest";
import { closedPort } from "./support/closed-port.ts";
import { alwaysFirst, ask, failure, fleetOf, raw } from "./support/fleet.ts";
import { startNode, startRawNode } from "./support/node-server.ts";

/** A node that closes the connection as soon as it has a request. */
const startDeafNode = () => startRawNode((socket) => socket.destroy());

describe("a request that did not get through", () => {
  it("H14 POST to a closed port is sent to another node, free", async () => {
    await using gone = await closedPort();
    await using b = await startNode("b");
    await using fleet = fleetOf([gone, b], { internals: alwaysFirst });
    const answer = await ask(fleet, { method: "POST", body: "x" });
    expect(answer).toMatchObject({ text: "b", classes: ["not-sent", "answered"] });
    expect(answer.attempts[0]?.error).toMatchObject({ code: "ECONNREFUSED" });
    expect(answer.attempts[1]).toMatchObject({ free: true });
  });

  it("H15 POST whose connect times out is sent to another node", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    const slow = (
      options: { port?: string },
      callback: (...result: [Error, null] | [null, never]) => void,
    ): void => {
      if (options.port === String(a.port)) {
        setTimeout(() => callback(new errors.ConnectTimeoutError(), null), 50);
        return;
      }
      const socket = connect(Number(options.port), "127.0.0.1", () => callback(null, socket as never));
    };
    await using fleet = fleetOf([a, b], { internals: alwaysFirst, pool: { connect: slow as never } });
    expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({
      text: "b",
      classes: ["not-sent", "answered"],
    });
  });

  it("H16 GET whose connection closes without an answer is tried elsewhere, charged", async () => {
    await using a = await startDeafNode();
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ text: "b", classes: ["ambiguous", "answered"] });
    expect(answer.attempts[1]).toMatchObject({ free: false });
  });

  it("H17 POST, same, fails as ambiguous after exactly one attempt", async () => {
    await using a = await startDeafNode();
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const error = await failure(ask(fleet, { method: "POST", path: "/order", body: "x" }));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_AMBIGUOUS", attempts: [{ class: "ambiguous" }] });
    expect(error.message).toContain("POST /order");
    expect(error.cause).toBeInstanceOf(Error);
    expect(a.requestCount).toBe(1);
    expect(b.seen).toEqual([]);
  });

  it("H18 POST with an Idempotency-Key is tried elsewhere with the same key", async () => {
    const heads: string[] = [];
    await using a = await startRawNode((socket, head) => {
      heads.push(head);
      socket.destroy();
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const headers = { "Idempotency-Key": "order-7" };
    expect(await ask(fleet, { method: "POST", body: "x", headers })).toMatchObject({ text: "b" });
    expect(heads[0]).toMatch(/idempotency-key: order-7/i);
    expect(b.seen[0]?.headers["idempotency-key"]).toBe("order-7");
  });

  it("H19 idempotencyKey: true makes one key for all attempts", async () => {
    const heads: string[] = [];
    await using a = await startRawNode((socket, head) => {
      heads.push(head);
      socket.destroy();
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const call = {
      method: "POST",
      body: "x",
      fleet: { idempotencyKey: true, attemptHeader: "x-attempt" },
    } as const;
    expect(await ask(fleet, call)).toMatchObject({ text: "b" });
    const key = b.seen[0]?.headers["idempotency-key"];
    expect(key).toMatch(/^[0-9a-f-]{36}$/);
    expect(heads[0]).toContain(key);
    expect(heads[0]).not.toContain("x-attempt");
    expect(b.seen[0]?.headers["x-attempt"]).toBe("2");
  });

  it("H20 PUT with idempotent: false is not repeated", async () => {
    await using a = await startDeafNode();
    await using fleet = fleetOf([a]);
    const error = await failure(ask(fleet, { method: "PUT", body: "x", fleet: { idempotent: false } }));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_AMBIGUOUS" });
    expect(a.requestCount).toBe(1);
  });

  it("ends with the last error when every attempt of an idempotent call fails", async () => {
    await using a = await startDeafNode();
    await using fleet = fleetOf([a], { retry: { deadlineMs: 0 } });
    const error = await failure(ask(fleet));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_ATTEMPTS" });
    expect(error.attempts).toHaveLength(4);
  });

  it("blames no node for a request that no node could take", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a]);
    const error = await failure(
      ask(fleet, { method: "POST", body: "x", headers: { "content-length": "9" } }),
    );
    expect(error).toMatchObject({ code: "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH" });
    expect(fleet.nodes[0]?.state).toBe("admitted");
  });

  it("H59 a connection that the server closed in the moment of the call: GET recovered, POST ambiguous", async () => {
    await using a = await startRawNode((socket, _head, count) => {
      // The first request of each pair is served; the next one on that connection meets a close.
      if (count % 2 === 1) socket.write(raw("200 OK", []));
      else socket.destroy();
    });
    await using fleet = fleetOf([a]);
    await ask(fleet);
    expect(await ask(fleet)).toMatchObject({ status: 200, classes: ["ambiguous", "answered"] });
    expect(await failure(ask(fleet, { method: "POST", body: "x" }))).toMatchObject({
      code: "CELLKIT_CLIENT_AMBIGUOUS",
    });
  });
});
