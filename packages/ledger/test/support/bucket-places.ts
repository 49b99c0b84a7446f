/** Buckets for tests of ledgers: a directory, and a server on one behind a relay that knows when the store is at rest. */
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Bucket, type BucketOptions, openBucket } from "@cellkit/bucket";
import { serveBucket } from "@cellkit/bucket/server";

const credentials = { accessKeyId: "ledger-test", secretAccessKey: "ledger-test-secret" };

/** `lose-answer`: the store does it, and the client's connection is reset. `send-twice`: the client gets the second answer. */
type Fault = "pass" | "lose-answer" | "send-twice";

/** A bucket on a server of this process. */
export interface ServedBucket extends AsyncDisposable {
  /** The bucket's directory; its objects can be reached by `file://` too. */
  fileUrl: string;
  /** For `openBucket("s3://cells", …)`. */
  options: BucketOptions;
  /** The same, through the relay. */
  relayed: BucketOptions;
  /** What the relay does to a request, by its first line; at first it passes everything on. */
  fault: (requestLine: string) => Fault;
  /** Opens the bucket; closed with the server. */
  open(options?: BucketOptions): Bucket;
  /** Resolves when the store has done everything that was sent through the relay to the ledger of that name, by programs that are gone. */
  atRest(name: string): Promise<void>;
  /** Ends the server alone. */
  stop(): Promise<void>;
}

/** Starts a server on a directory of its own; both are gone when it is disposed of. */
export async function serveTestBucket(): Promise<ServedBucket> {
  const base = await mkdtemp(join(tmpdir(), "cellkit-ledger-"));
  const directory = join(base, "bucket");
  const server = await serveBucket({ directory, credentials });
  const relay = await startRelay(server.port, (line) => served.fault(line));
  const buckets: Bucket[] = [];
  const options = { endpoint: server.endpoint, region: "us-east-1", credentials };
  const served: ServedBucket = {
    fault: () => "pass",
    fileUrl: pathToFileURL(directory).href,
    options,
    relayed: { ...options, endpoint: `http://127.0.0.1:${relay.port}` },
    open(more = {}) {
      const bucket = openBucket("s3://cells", { ...options, ...more });
      buckets.push(bucket);
      return bucket;
    },
    atRest: relay.atRest,
    stop: () => server.close(),
    async [Symbol.asyncDispose]() {
      for (const bucket of buckets) await bucket.close();
      relay.close();
      await server.close();
      await rm(base, { recursive: true, force: true });
    },
  };
  return served;
}

/** One connection through the relay. */
interface Relayed {
  onward: Socket;
  /** The ledger that it is for. */
  name: string | undefined;
  /** The request that is on its way, as far as it came; empty between an answer and the next request. */
  request: Buffer;
  clientIsGone: boolean;
  /** Whether this is the second time that the request was sent. */
  isSecond: boolean;
}

/** Passes connections on. One whose client is gone is ended when the store has answered what had been sent whole. */
async function startRelay(
  target: number,
  choose: (requestLine: string) => Fault,
): Promise<{ port: number; atRest(name: string): Promise<void>; close(): void }> {
  const open = new Set<Relayed>();
  const endIfDone = (one: Relayed) => {
    if (one.clientIsGone && !isWhole(one.request)) one.onward.end();
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const onward = connect({ port: target, host: "127.0.0.1" });
    const one: Relayed = {
      onward,
      name: undefined,
      request: Buffer.alloc(0),
      clientIsGone: false,
      isSecond: false,
    };
    open.add(one);
    onward.once("close", () => {
      open.delete(one);
      client.destroy();
    });
    client.on("data", (data) => {
      one.request = Buffer.concat([one.request, data]);
      one.name ??= /\/ledger(?:\/|%2F)([a-z0-9-]+)/.exec(one.request.toString("latin1"))?.[1];
      onward.write(data);
    });
    onward.on("data", (data) => {
      const fault = one.request.length === 0 ? "pass" : choose(firstLine(one.request));
      if (fault === "send-twice" && !one.isSecond) {
        one.isSecond = true;
        onward.write(one.request);
        return;
      }
      one.request = Buffer.alloc(0);
      one.isSecond = false;
      if (fault === "lose-answer") client.destroy();
      if (client.writable) client.write(data);
      endIfDone(one);
    });
    const clientGone = () => {
      one.clientIsGone = true;
      endIfDone(one);
    };
    client.once("end", clientGone);
    client.once("error", clientGone);
    onward.once("error", () => onward.destroy());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as AddressInfo).port,
    async atRest(name) {
      // What a program sent was with the kernel before its end was told: one turn accepts a connection, the next reads from it.
      for (let turn = 0; turn < 4; turn += 1) await new Promise((done) => setImmediate(done));
      const own = [...open].filter((one) => one.name === name);
      await Promise.all(own.map(({ onward }) => new Promise((done) => onward.once("close", done))));
    },
    close() {
      for (const { onward } of open) onward.destroy();
      server.close();
    },
  };
}

/** Whether a request is there to its last byte, so that the store will do what it says. */
function isWhole(request: Buffer): boolean {
  const headEnd = request.indexOf("\r\n\r\n");
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(request.subarray(0, headEnd).toString("latin1"))?.[1];
  return request.length >= headEnd + 4 + Number(length ?? 0);
}

function firstLine(request: Buffer): string {
  return request.toString("latin1").split("\r\n", 1)[0] ?? "";
}
