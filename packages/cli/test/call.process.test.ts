// `cellkit call` against nodes that listen, on a bucket in a directory.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { Bucket } from "@cellkit/bucket";
import {
  FleetKey,
  fleetKeyKey,
  formatFleetKey,
  formatNodeRecord,
  nodeRecordKey,
  RequestVerifier,
} from "@cellkit/peer";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { WebSocketServer } from "ws";
import { until } from "../../../tools/test-support/until.ts";
import { cellkitCommand } from "../src/index.ts";
import { run } from "./support/command.ts";
import { directoryBucket, PeerNode } from "./support/peer-node.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let bucket: Bucket;
let env: { CELLD_BUCKET: string };
const nodes: PeerNode[] = [];
beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  const made = directoryBucket(`${directory.path}/bucket`);
  bucket = made.bucket;
  env = { CELLD_BUCKET: made.url };
  await bucket.put("deploy/current.json", JSON.stringify({ script_name: "chat", version: "1" }));
});
afterEach(async () => {
  for (const node of nodes.splice(0)) await node[Symbol.asyncDispose]();
  await bucket.close();
  await directory.remove();
});

/** A node whose cells answer with what they were sent. */
async function echo(): Promise<void> {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => [...offered][0] ?? false,
  });
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      const text = data.toString();
      if (text === "binary") socket.send(new Uint8Array(3));
      else if (text === "leave") socket.close(4000, "as asked");
      else socket.send(`you said ${text}`);
    });
  });
  nodes.push(
    await PeerNode.start(bucket, "node-a", {
      onFetch: async (request, response, call) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk);
        const { method, url, headers } = request;
        response.writeHead(url?.endsWith("/teapot") === true ? 418 : 200, { "x-method": method ?? "" });
        const said = { method, url, one: headers["x-one"], type: headers["content-type"], name: call.name };
        response.end(JSON.stringify({ ...said, body: Buffer.concat(chunks).toString() }));
      },
      onConnect: (request, socket, head) => {
        if (request.url?.endsWith("/refused") === true)
          socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
        else
          sockets.handleUpgrade(request, socket as never, head, (each) =>
            sockets.emit("connection", each, request),
          );
      },
      onRpc: async (method, args) => {
        if (method !== "add") throw new TypeError(`no method ${method}`);
        return args.reduce<number>((sum, each) => sum + Number(each), 0);
      },
    }),
  );
}

/** Runs `cellkit call` with this standard input, which ends once it has said all of `answers`. */
async function withInput(
  args: readonly string[],
  input: string,
  answers: readonly string[] = [],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { command, args: before } = cellkitCommand();
  const child = spawn(command, [...before, "call", ...args], { env: { ...process.env, ...env } });
  onTestFinished(() => void child.kill("SIGKILL"));
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk) => out.push(chunk));
  child.stderr.on("data", (chunk) => err.push(chunk));
  const closed = once(child, "close");
  child.stdin.write(input);
  await until("answers", () => {
    const said = Buffer.concat([...out, ...err]).toString();
    return child.exitCode !== null || answers.every((answer) => said.includes(answer));
  });
  child.stdin.end();
  const [code] = await closed;
  return { code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() };
}

it("a request reaches the cell with its method, headers and body, and the answer is on standard output", async () => {
  await echo();
  const plain = await run(["call", "Room:lobby", "/a?b=1"], env);
  expect({ ...plain, stdout: JSON.parse(plain.stdout.join("")) }).toEqual({
    code: 0,
    stdout: { method: "GET", url: "http://cell/a?b=1", name: "lobby", body: "" },
    stderr: [],
  });
  const posted = await run(
    ["call", "Room:lobby", "https://example.com/x", "-H", "X-One: 1", "-d", "hi", "-i"],
    env,
  );
  expect(posted.stdout).toContain("HTTP/1.1 200 OK");
  expect(posted.stdout).toContain("x-method: POST");
  expect(JSON.parse(posted.stdout.at(-1) ?? "")).toEqual({
    method: "POST",
    url: "https://example.com/x",
    one: "1",
    name: "lobby",
    body: "hi",
  });
});

it("a body comes from a file or from standard input", async () => {
  await echo();
  const file = `${directory.path}/body`;
  await writeFile(file, "of a file");
  const put = await run(["call", "Room:lobby", "-X", "PUT", "-d", `@${file}`], env);
  expect(JSON.parse(put.stdout.join(""))).toMatchObject({ method: "PUT", body: "of a file" });
  const piped = await withInput(["Room:lobby", "-d", "@-"], "of standard input");
  expect(JSON.parse(piped.stdout)).toMatchObject({ method: "POST", body: "of standard input" });
});

it("--fail turns a status of 400 or above into code 3, and the body still comes", async () => {
  await echo();
  expect((await run(["call", "Room:lobby", "/teapot"], env)).code).toBe(0);
  const failed = await run(["call", "Room:lobby", "/teapot", "-f"], env);
  expect(failed.code).toBe(3);
  expect(failed.stdout).toHaveLength(1);
});

it("a method is called with its arguments; one that throws is a failure", async () => {
  await echo();
  expect(await run(["call", "Room:lobby", "--rpc", "add", "-d", "[1,2,3]"], env)).toEqual({
    code: 0,
    stdout: ["6"],
    stderr: [],
  });
  const failed = await run(["call", "Room:lobby", "--rpc", "sub"], env);
  expect(failed.code).toBe(1);
  expect(failed.stderr[0]).toMatch(/^cellkit call: /);
  const bad = await run(["call", "Room:lobby", "--rpc", "add", "-d", "{}"], env);
  expect(bad.code).toBe(2);
});

describe("a WebSocket", () => {
  it("sends lines, prints messages, and ends after its input", async () => {
    await echo();
    const talk = await withInput(["Room:lobby", "/s", "--ws"], "one\nbinary\ntwo\n", [
      "you said one",
      "a binary message",
      "you said two",
    ]);
    expect(talk).toEqual({
      code: 0,
      stdout: "you said one\nyou said two\n",
      stderr: "a binary message of 3 bytes\nclosed: 1000\n",
    });
  });

  it("that the cell closes for a reason of its own is code 3, with the reason", async () => {
    await echo();
    const talk = await withInput(["Room:lobby", "--ws", "--wait-ms", "20000"], "leave\n");
    expect(talk).toMatchObject({ code: 3, stderr: "closed: 4000 as asked\n" });
  });

  it("that the cell refuses is told with its status", async () => {
    await echo();
    const talk = await withInput(["Room:lobby", "/refused", "--ws"], "");
    expect(talk.stderr).toBe("the cell answered 403 instead of a WebSocket\n");
    expect(talk.code).toBe(3);
  });
});

describe("a fleet of the older generation is called as it wants to be", () => {
  it("at the owner that the cell's record names", async () => {
    const key = new FleetKey(new Uint8Array(32).fill(3));
    await bucket.createIfAbsent(fleetKeyKey, formatFleetKey(key));
    const verifier = new RequestVerifier({ keys: [key], version: 2, self: "owner" });
    let scope = "";
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as const);
      const { method = "", url: target = "" } = request;
      const verdict = verifier.verify({ method, target, headers, body }, Date.now());
      scope = target.replace("/__do/", "");
      response.writeHead(verdict.ok ? 200 : verdict.status, { "x-cells-peer-version": "2" });
      response.end(
        verdict.ok ? `${JSON.parse(body.toString()).url} ${JSON.parse(body.toString()).capacityHandoff}` : "",
      );
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const addr = `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
    const record = { node: "owner", addr, peerProtocol: 2, probePublicKey: "", extensions: [] };
    await bucket.put(nodeRecordKey("owner"), formatNodeRecord({ ...record, expiresMs: Date.now() + 60_000 }));
    const unowned = await run(["call", "Room:lobby", "/x"], env);
    expect(unowned).toEqual({ code: 0, stdout: ["http://cell/x true"], stderr: [] });
    await bucket.put(`cells/${scope}/own.json`, JSON.stringify({ node: "owner", epoch: 4 }));
    const owned = await run(["call", "Room:lobby", "/x"], env);
    expect(owned.stdout).toEqual(["http://cell/x false"]);
    server.close();
  });
});

describe("the code is", () => {
  it("1 when no node lives", async () => {
    await bucket.createIfAbsent(fleetKeyKey, formatFleetKey(new FleetKey(new Uint8Array(32).fill(3))));
    const { code, stderr } = await run(["call", "Room:lobby"], env);
    expect(stderr[0]).toMatch(/the fleet has no node to call/);
    expect(code).toBe(1);
    const socket = await run(["call", "Room:lobby", "--ws"], env);
    expect(socket.stderr).toEqual(stderr);
    expect(socket.code).toBe(1);
  });

  it("1 when --max-time-ms is over, and it is said whether the call may have run", async () => {
    let askedCount = 0;
    const onFetch = () => {
      askedCount += 1;
    };
    nodes.push(await PeerNode.start(bucket, "node-a", { onFetch }));
    // The shortest time is over before anything is sent where the machine is busy, and then that is said.
    for (const maxTimeMs of [3_000, 10_000, 60_000]) {
      const { code, stderr } = await run(["call", "Room:lobby", "--max-time-ms", String(maxTimeMs)], env);
      const known = askedCount > 0 ? "the call may have run" : "nothing was sent to a node";
      expect(stderr).toEqual([`cellkit call: no whole answer within --max-time-ms ${maxTimeMs}; ${known}`]);
      expect(code).toBe(1);
      if (askedCount > 0) return;
    }
    expect(askedCount).toBe(1);
  });

  it("1 for another key than the fleet's, and it is said what tells more", async () => {
    await echo();
    const file = `${directory.path}/key`;
    await writeFile(file, "ab".repeat(32), { mode: 0o600 });
    const { code, stderr } = await run(["call", "Room:lobby", "--key-file", file], env);
    expect(stderr[0]).toMatch(
      /refused the tunnel with 401, and nothing ran: .*; cellkit diagnose tells which$/,
    );
    expect(code).toBe(1);
  });

  it("2 for a method of a class that the deployment does not have", async () => {
    await echo();
    await bucket.put("deploy/chat/1/manifest.json", JSON.stringify({ do_classes: ["Room"] }));
    const { code, stderr } = await run(["call", "Nope:lobby", "--rpc", "sub"], env);
    expect(stderr).toEqual(["cellkit call: no class Nope in chat; it has Room"]);
    expect(code).toBe(2);
  });

  it.each([
    ["a cell without a class", ["lobby"], /must be CLASS:NAME/],
    ["a header without a name", ["Room:lobby", "-H", ": b"], /must be NAME: VALUE/],
    [
      "a header without a colon, which is not shown",
      ["Room:lobby", "-H", "foo"],
      /--header: must be NAME: VALUE(?!.*foo)/,
    ],
    [
      "a key file that is not there",
      ["Room:lobby", "--key-file", "/nonexistent/key"],
      /--key-file: .*\/nonexistent\/key/,
    ],
    ["a file that is not there", ["Room:lobby", "-d", "@/nonexistent/file"], /the file cannot be read/],
    ["a method that is none", ["Room:lobby", "-X", "GE T"], /must be an HTTP method/],
    ["a WebSocket with a body", ["Room:lobby", "--ws", "-d", "x"], /--data "x": does not go with --ws/],
    ["a WebSocket and a method", ["Room:lobby", "--ws", "--rpc", "x"], /--rpc "x": does not go with --ws/],
    ["a URL that is none", ["Room:lobby", "ftp://x/"], /must be a path/],
  ])("2 for %s", async (_, args, message) => {
    await bucket.createIfAbsent(fleetKeyKey, formatFleetKey(new FleetKey(new Uint8Array(32).fill(3))));
    const { code, stderr } = await run(["call", ...args], env);
    expect(stderr.join("\n")).toMatch(message);
    expect(code).toBe(2);
  });
});
