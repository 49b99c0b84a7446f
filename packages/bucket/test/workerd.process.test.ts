import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { openBucket } from "../src/index.ts";
import { collect } from "./support/bucket-conformance.ts";
import { clientOptions, credentials, startServer } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const START_LIMIT_MS = 60_000;
const workerd = (createRequire(import.meta.url)("workerd") as { default: string }).default;

/** One cluster node with storage only in the bucket; its clocks run four times as fast, so a dead one is replaced in 5 s, and one that is held up for a second is not. */
async function startNode(endpoint: string): Promise<{ socket: string; process: ChildProcess; log: string }> {
  const directory = await temporaryDirectory();
  const [socket, log] = [join(directory, "http.sock"), join(directory, "log")];
  await mkdir(join(directory, "disk"));
  await copyFile(
    fileURLToPath(new URL("fixtures/counter-worker.js", import.meta.url)),
    join(directory, "worker.js"),
  );
  await writeFile(
    join(directory, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .main), (name = "disk", disk = (path = "${directory}/disk", writable = true)) ],
  sockets = [ (name = "http", address = "unix:${socket}", http = (), service = "main") ],
  cluster = (
    bucket = "s3://cells/fleet", address = "127.0.0.1:0", key = "${"0123456789abcdef".repeat(4)}", unsafeTimeDivisor = 4,
    bucketOptions = [ "aws_endpoint=${endpoint}", "aws_region=us-east-1",
      "aws_access_key_id=${credentials.accessKeyId}", "aws_secret_access_key=${credentials.secretAccessKey}" ] ) );
const main :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ], compatibilityDate = "2026-10-01",
  durableObjectNamespaces = [ (className = "Counter", uniqueKey = "bucket-test-counter", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [ (name = "COUNTERS", durableObjectNamespace = "Counter") ] );
`,
  );
  const child = spawn(
    "sh",
    ["-c", `exec "$0" serve --experimental "$1" > "$2" 2>&1`, workerd, join(directory, "config.capnp"), log],
    {
      env: { ...process.env, AWS_ALLOW_HTTP: "true" },
    },
  );
  onTestFinished(() => stop(child));
  return { socket, process: child, log };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((done) => child.once("exit", () => done()));
  child.kill("SIGKILL");
  await gone;
}

function call(socket: string, method: string, path: string): Promise<string> {
  return new Promise((done, failed) => {
    const sent = request({ socketPath: socket, method, path, headers: { host: "test" } }, (answer) => {
      let body = "";
      answer.on("data", (bytes: Buffer) => (body += bytes.toString()));
      answer.on("end", () =>
        answer.statusCode === 200 ? done(body) : failed(new TypeError(`${answer.statusCode} ${body}`)),
      );
    });
    sent.on("error", failed);
    sent.end();
  });
}

/** The first answer to a read, which a node gives once it is ready and owns the cell. */
async function firstAnswer(
  node: { socket: string; log: string; process: ChildProcess },
  path: string,
): Promise<string> {
  let answer = "";
  await expect
    .poll(
      async () => {
        if (node.process.exitCode !== null)
          throw new TypeError(`workerd ended: ${await readFile(node.log, "utf8")}`);
        answer = await call(node.socket, "GET", path).catch((error: Error) => `not yet: ${error.message}`);
        return answer;
      },
      { timeout: START_LIMIT_MS, interval: 100 },
    )
    .toMatch(/^\d+$/);
  return answer;
}

it("a workerd cluster node keeps its cells here: another node has them after the first was killed", async () => {
  const server = await startServer();
  const first = await startNode(server.endpoint);
  expect(await firstAnswer(first, "/a")).toBe("0");
  for (let count = 1; count <= 5; count += 1)
    expect(await call(first.socket, "POST", "/a")).toBe(String(count));
  expect(await call(first.socket, "POST", "/b")).toBe("1");
  await stop(first.process);

  const second = await startNode(server.endpoint);
  expect(await firstAnswer(second, "/a")).toBe("5");
  expect(await call(second.socket, "POST", "/a")).toBe("6");
  expect(await firstAnswer(second, "/b")).toBe("1");
  expect(server.failures).toEqual([]);

  const bucket = openBucket("s3://cells/fleet/v1", clientOptions(server));
  const prefixes = await collect(bucket.list("", { delimiter: "/" }));
  expect(prefixes).toEqual(expect.arrayContaining([{ prefix: "do/" }, { prefix: "nodes/" }]));
  await bucket.close();
});
