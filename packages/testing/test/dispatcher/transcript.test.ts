import { describe, expect, it } from "vitest";
import { dispatcher, exampleRequest, until } from "../../src/index.ts";
import { call, exchange, failureOf, submit } from "../support/call.ts";
import { dial } from "../support/peers.ts";

/** Where a socket goes. */
function addressOf(origin: string): { host: string; port: number } {
  const { hostname, port } = new URL(origin);
  return { host: hostname, port: Number(port) };
}

it("the transcript has every call with its exact fields, bytes and status", async () => {
  await using it = await dispatcher();
  await submit(it.origin, "a");
  const [first] = it.calls;
  expect(first).toMatchObject({
    index: 0,
    call: "submit",
    id: "a",
    method: "POST",
    path: "/v1/executions",
    status: 202,
  });
  expect(first?.fields[0]).toEqual(["Host", it.origin]);
  expect(Buffer.from(first?.body ?? []).toString()).toBe(JSON.stringify(exampleRequest("a")));
});

describe("what is no whole request", () => {
  const broken = [
    ["malformed", "GET\r\n\r\n", 400],
    ["left without an answer", "GET /v1/health HTTP/1.1\r\nContent-Length: x\r\n\r\n", undefined],
  ] as const;

  it.each(broken)("%s: is in the transcript as other, with its bytes", async (_what, bytes, status) => {
    await using it = await dispatcher();
    await exchange(it.origin, bytes);
    expect(it.calls).toMatchObject([{ call: "other", id: undefined, method: "", path: "", status }]);
    expect(Buffer.from(it.calls[0]?.body ?? []).toString()).toBe(bytes);
  });

  const head = "POST /v1/executions HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
  it.each([
    ["in its body", `${head}ab`, "end", "/v1/executions"],
    ["in its body by a reset", `${head}ab`, "resetAndDestroy", "/v1/executions"],
    ["in its head by a reset", "POST /v1/exec", "resetAndDestroy", ""],
  ] as const)("ended %s: is there, too, with what could be read", async (_what, bytes, end, path) => {
    await using it = await dispatcher();
    const peer = await dial(addressOf(it.origin));
    peer.socket.write(bytes);
    // Connections are accepted and read in their order: once two later calls are answered, these bytes were read.
    await call(it.origin, "GET", "/v1/health");
    await call(it.origin, "GET", "/v1/health");
    peer.socket[end]();
    const recorded = await it.received("other");
    expect(recorded).toMatchObject({ path, status: undefined });
    expect(Buffer.from(recorded.body).toString()).toBe(bytes);
  });

  it.each(broken)("%s: is no step of a script", async (_what, bytes) => {
    const it = await dispatcher();
    it.script([{ call: "submit", id: "a" }]);
    expect(await exchange(it.origin, bytes)).toHaveLength(0);
    const error = String(await failureOf(it.close()));
    expect(error).toContain("submit of a was expected, but other came");
    expect(error).toContain("bytes that are no request");
  });

  it("may be a step of a script that says so", async () => {
    await using it = await dispatcher();
    it.script([{ call: "other", body: "GET\r\n\r\n" }]);
    expect((await exchange(it.origin, "GET\r\n\r\n")).toString()).toContain("malformed request line");
    it.verify();
  });

  it("is none of a connection without a byte", async () => {
    await using it = await dispatcher();
    it.script([]);
    const peer = await dial(addressOf(it.origin));
    peer.socket.end();
    await until("its end", () => peer.closed);
    it.verify();
    expect(it.calls).toHaveLength(0);
  });
});
