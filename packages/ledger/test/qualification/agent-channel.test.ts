import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { checkSecret, openChannel } from "../../src/qualification/agent-channel.ts";
import { listenForAgents, peerPlace } from "../../src/qualification/agent-listener.ts";

const secret = "a secret of more than 32 characters";

let server: Server;
let accepted: Socket;
let client: Socket;
beforeEach(async () => {
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  [accepted] = await once(server, "connection");
});
afterEach(() => {
  client.destroy();
  accepted.destroy();
  server.close();
});

const both = (clientSecret = secret) =>
  Promise.allSettled([
    openChannel(accepted, "server", { secret, peer: "the client" }),
    openChannel(client, "client", { secret: clientSecret, peer: "the server" }),
  ]);

it("two that know the secret hear each other's lines, those that came early included", async () => {
  const [here, there] = await both();
  if (here.status !== "fulfilled" || there.status !== "fulfilled") throw new TypeError("no channel");
  here.value.send("from the server");
  there.value.send("from the client");
  there.value.send("again");
  const heard: string[] = [];
  const all = Promise.withResolvers<void>();
  const take = (line: string): void => {
    heard.push(line);
    if (heard.length === 3) all.resolve();
  };
  here.value.onLine(take);
  there.value.onLine(take);
  await all.promise;
  expect(heard.sort()).toEqual(["again", "from the client", "from the server"]);
});

it("another secret is refused on both sides, and not shown", async () => {
  const results = await both("another secret of 32 characters!!");
  for (const result of results) {
    expect(result.status).toBe("rejected");
    if (result.status === "rejected") expect(String(result.reason)).not.toContain("of 32 characters");
  }
  expect(results[0]).toMatchObject({ reason: { message: expect.stringContaining("another secret") } });
});

it.each([
  ["a client that sends something else", "GET / HTTP/1.1\n", /no cellkit qualification/],
  ["a client that sends a long line", `${"x".repeat(2_000)}\n`, /no cellkit qualification/],
  ["a client that hangs up", undefined, /closed the connection/],
])("%s is refused", async (_, text, message) => {
  const opened = openChannel(accepted, "server", { secret, peer: "the client" });
  if (text === undefined) client.end();
  else client.write(text);
  await expect(opened).rejects.toThrow(message);
});

it.each([
  ["changed", (line: string) => line.replace("one", "two")],
  ["repeated", (line: string) => line + line],
  ["without a proof", () => "one\n"],
])("a line that was %s on its way ends the connection", async (kind, change) => {
  // A man in the middle, who knows everything but the secret.
  const middle = createServer().listen(0, "127.0.0.1");
  await once(middle, "listening");
  const outer = connect((middle.address() as AddressInfo).port, "127.0.0.1");
  const [inner] = (await once(middle, "connection")) as [Socket];
  let spoil = false;
  inner.on("data", (data) => void client.write(spoil ? change(String(data)) : data));
  client.on("data", (data) => void inner.write(data));
  const [here, there] = await Promise.all([
    openChannel(accepted, "server", { secret, peer: "the client" }),
    openChannel(outer, "client", { secret, peer: "the server" }),
  ]);
  const heard: string[] = [];
  here.onLine((line) => heard.push(line));
  spoil = true;
  const gone = new Promise((resolve) => accepted.once("close", resolve));
  there.send("one");
  await gone;
  expect(heard).toEqual(kind === "repeated" ? ["one"] : []);
  outer.destroy();
  inner.destroy();
  middle.close();
});

it("a short secret is refused before anything is opened", async () => {
  expect(() => checkSecret("short")).toThrow(/5 characters.*32/);
  expect(() => peerPlace({ host: "127.0.0.1", port: 1, secret: "short" })).toThrow(/32/);
  await expect(
    listenForAgents({ host: "127.0.0.1", port: 0, secret: "short", agent: { command: "true", args: [] } }),
  ).rejects.toMatchObject({ code: "CELLKIT_LEDGER_AGENT" });
});

it("an address that nobody answers at is told", async () => {
  // No program of this machine is given this port.
  const place = peerPlace({ host: "127.0.0.1", port: 1, secret });
  await expect(place.start({ onLine: () => undefined, onEnd: () => undefined })).rejects.toThrow(
    "127.0.0.1:1: it cannot be reached",
  );
});

it("silent connections keep nobody out, and who finds all agents at work hears it", async () => {
  const agent = { command: "cat", args: [] };
  await using listener = await listenForAgents({
    host: "127.0.0.1",
    port: 0,
    secret,
    agent,
    maxAgentCount: 1,
  });
  const silent = Array.from({ length: 40 }, () => connect(listener.port, "127.0.0.1"));
  try {
    for (const socket of silent) socket.on("error", () => undefined);
    await Promise.all(silent.slice(-1).map((socket) => once(socket, "connect")));
    const place = peerPlace({ host: "127.0.0.1", port: listener.port, secret });
    const first = await place.start({ onLine: () => undefined, onEnd: () => undefined });
    const { promise: reason, resolve } = Promise.withResolvers<string>();
    await place.start({ onLine: () => undefined, onEnd: resolve });
    expect(await reason).toMatch(/it is busy/);
    await first.close();
  } finally {
    for (const socket of silent) socket.destroy();
  }
});
