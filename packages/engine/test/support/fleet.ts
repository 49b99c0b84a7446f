// Engines as celld holds them, in this process: each with a listener that carries CONNECT to its cluster port.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bucket, openBucket } from "@cellkit/bucket";
import { serveBucket } from "@cellkit/bucket/server";
import { publishDeployment } from "@cellkit/deployment";
import { createWorkerdEngine, type NodeEngine, type WorkerdEngineOptions } from "../../src/index.ts";
import { type TestWorker, testBundle } from "./bundles.ts";

/** A line of an engine's log. */
interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: object;
}

/** An engine with its listener. */
export interface TestNode extends AsyncDisposable {
  readonly engine: NodeEngine;
  readonly directory: string;
  readonly advertise: string;
  readonly log: readonly LogLine[];
}

/** A store and everything that was started on it. */
export interface TestFleet extends AsyncDisposable {
  readonly bucket: Bucket;
  readonly bucketUrl: string;
  readonly endpoint: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string };
  readonly root: string;
  deploy(worker: TestWorker): Promise<void>;
  /** Makes a node and, unless told otherwise, starts it. */
  node(
    options?: Partial<Omit<WorkerdEngineOptions, "advertise">> & { advertise?: string; start?: boolean },
  ): Promise<TestNode>;
}

/** Starts a store with an empty prefix. */
export async function startFleet(): Promise<TestFleet> {
  const root = await mkdtemp(join(tmpdir(), "cellkit-test-"));
  const credentials = { accessKeyId: "test", secretAccessKey: "test-secret-key" };
  const store = await serveBucket({ directory: join(root, "bucket"), credentials });
  const { endpoint } = store;
  const bucketUrl = "s3://cells/fleet";
  const bucket = openBucket(bucketUrl, { endpoint, region: "us-east-1", credentials });
  const nodes: TestNode[] = [];
  let made = 0;
  return {
    bucket,
    bucketUrl,
    endpoint,
    credentials,
    root,
    deploy: async (worker) => void (await publishDeployment(bucket, testBundle(worker))),
    node: async ({ start = true, ...options } = {}) => {
      const directory = join(root, `node-${made}`);
      made += 1;
      const node = await makeNode({ bucket, bucketUrl, endpoint, credentials, directory, ...options });
      nodes.push(node);
      if (start) await node.engine.start();
      return node;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
      await bucket.close();
      await store.close();
      await rm(root, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function makeNode(
  options: Omit<WorkerdEngineOptions, "advertise" | "node" | "log"> & { advertise?: string; node?: string },
): Promise<TestNode> {
  const log: LogLine[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void log.push({ level, message, fields });
  let engine: NodeEngine | undefined;
  const listener = await serveCluster(() => engine?.clusterPort);
  const advertise = options.advertise ?? `127.0.0.1:${(listener.server.address() as AddressInfo).port}`;
  engine = createWorkerdEngine({
    deploymentPollMs: 100,
    node: "test",
    ...options,
    advertise,
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
  });
  const made = engine;
  return {
    engine: made,
    directory: options.directory,
    advertise,
    log,
    [Symbol.asyncDispose]: async () => {
      await made.stop();
      const closed = new Promise((resolve) => listener.server.close(resolve));
      listener.server.closeAllConnections();
      // Connections that were handed over by CONNECT are not the server's any more.
      for (const socket of listener.sockets) socket.destroy();
      await closed;
    },
  };
}

/** What celld's internal listener does with a peer's CONNECT. */
async function serveCluster(
  port: () => number | undefined,
): Promise<{ server: Server; sockets: ReadonlySet<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on("connect", (request, socket: Socket, head: Buffer) => {
    const target = port();
    if (target === undefined) return void socket.destroy();
    const upstream = connect(target, "127.0.0.1", () => {
      const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
      for (let index = 0; index < request.rawHeaders.length; index += 2) {
        lines.push(`${request.rawHeaders[index]}: ${request.rawHeaders[index + 1]}`);
      }
      upstream.write(`${lines.join("\r\n")}\r\n\r\n`);
      upstream.write(head);
      socket.pipe(upstream).pipe(socket);
    });
    for (const stream of [socket, upstream]) {
      sockets.add(stream);
      stream.on("close", () => sockets.delete(stream));
    }
    // What one side sent before it ended is still delivered; an end in the middle ends both.
    socket.on("error", () => upstream.destroy());
    upstream.on("error", () => socket.destroy());
    socket.on("close", () => upstream.destroy());
    upstream.on("close", () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, sockets };
}
