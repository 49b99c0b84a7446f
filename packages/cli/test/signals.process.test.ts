// However a command waits, a signal ends it, and nothing of what it waits for does.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { timed } from "../../../tools/test-support/timed.ts";
import { Command } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

/** Less than the bucket server waits for the head of a request, 30 s. */
const headMs = 25_000;
/** A second, and one more: on a machine that is looked at, without what it takes for itself. */
const ownBoundMs = 2_000;

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
});
afterAll(() => directory.remove());

/** Sends a signal and answers the exit code. What the commands wait for here never comes: one that went on waiting would not end. */
async function end(command: Command, signal: NodeJS.Signals): Promise<number | null> {
  const { value, ownMs } = await timed(() => {
    command.process.signal(signal);
    return command.outcome();
  });
  if (inject("size") === "long") expect(ownMs).toBeLessThan(ownBoundMs);
  return value.code;
}

/** A project on which esbuild waits for ever: it opens the package.json of each folder, and this one is a FIFO. */
async function endlessProject(name: string): Promise<string> {
  const project = await directory.project(name, "hello");
  execFileSync("mkfifo", [join(project, "src/package.json")]);
  return project;
}

it.each(["SIGTERM", "SIGINT"] as const)("deploy, while it bundles: %s, code 130", async (signal) => {
  const bucket = pathToFileURL(join(directory.path, "bucket")).href;
  const project = await endlessProject(`deploy-${signal}`);
  const command = new Command(["deploy", project, "--bucket", bucket]);
  await using _ = await waitedFor(project);
  expect(await end(command, signal)).toBe(130);
});

it("deploy, while a store takes the connection and says nothing: code 130", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const connected = once(server, "connection");
  const project = await directory.project("silent", "hello");
  const command = new Command(["deploy", project], {
    CELLD_BUCKET: "s3://cells",
    S3_ENDPOINT: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    AWS_ACCESS_KEY_ID: "any",
    AWS_SECRET_ACCESS_KEY: "any-secret",
  });
  await connected;
  expect(await end(command, "SIGTERM")).toBe(130);
  server.close();
});

it("dev, while it bundles: code 0", async () => {
  const project = await endlessProject("dev");
  const command = new Command(["dev", project, "--port", "0"]);
  await using _ = await waitedFor(project);
  expect(await end(command, "SIGTERM")).toBe(0);
});

it.each([
  ["while its fleet starts", "bucket"],
  ["while it serves", "ready; stop with Ctrl-C"],
])("dev, %s: code 0", async (when, line) => {
  const project = await directory.project(`dev-${when.replaceAll(" ", "-")}`, "hello");
  const command = new Command(["dev", project, "--port", "0"]);
  await command.said(line);
  expect(await end(command, "SIGTERM")).toBe(0);
});

it("bucket serve, while a client does not end its request: code 0", async () => {
  const command = new Command(["bucket", "serve", join(directory.path, "served"), "--listen", "127.0.0.1:0"]);
  const line = (await command.printed(5)).find((each) => each.startsWith("export S3_ENDPOINT="));
  const socket = connect(Number(new URL(line?.split("=")[1] ?? "").port), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write("PUT /cells/key HTTP/1.1\r\nhost: cells\r\n");
  await once(socket, "connect");
  const startMs = performance.now();
  expect(await end(command, "SIGTERM")).toBe(0);
  // By then the server would have given up the head by itself.
  expect(performance.now() - startMs).toBeLessThan(headMs);
  socket.destroy();
});

/** Settles once esbuild waits at the FIFO, and keeps it waiting until the handle is closed. */
function waitedFor(project: string) {
  return open(join(project, "src/package.json"), "w");
}
