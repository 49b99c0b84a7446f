/**
 * The embedded S3 server: one bucket, kept in a directory of this machine, for the AWS SDKs and for workerd.
 * Every request is authenticated by its head before a byte of its body is read.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import {
  BucketAccessDeniedError,
  BucketFullError,
  BucketListenError,
  BucketOptionError,
  RequestRefusal,
} from "../errors.ts";
import { errnoOf } from "../store/disk-failure.ts";
import { ObjectStore } from "../store/object-store.ts";
import { type Answer, refusalAnswer } from "./answer.ts";
import { Authenticator } from "./authenticate.ts";
import { MultipartRequests } from "./multipart-requests.ts";
import { Payload, planPayload } from "./payload.ts";
import { parseHead, refuseUnsupported } from "./request-head.ts";
import { answerRequest, bodyLimit, checkTarget, type Site } from "./route.ts";

const HEADER_LIMIT_BYTES = 16 * 1024;
const HEADERS_TIMEOUT_MS = 30_000;
/** A head and its whole body. */
const REQUEST_TIMEOUT_MS = 3_600_000;
/** Longer than clients keep theirs, so that no request meets a closing connection. */
const KEEP_ALIVE_TIMEOUT_MS = 120_000;
/** A connection on which nothing moves. */
const IDLE_TIMEOUT_MS = 150_000;
const CONNECTION_LIMIT_COUNT = 2_048;
const CLOSE_TIMEOUT_MS = 5_000;
/** What is still read from a client after it was refused, so that it sees the answer instead of a reset. */
const LINGER_LIMIT_BYTES = 8 * 1024 * 1024;
const LINGER_TIMEOUT_MS = 2_000;
const OBJECT_LIMIT_BYTES = 5 * 1024 ** 3;

/** Options of {@link serveBucket}. */
export interface ServeBucketOptions {
  /** The directory of the bucket; made if absent. `openBucket("file://…")` may use it at the same time. */
  directory: string;
  /** The key pair that clients must sign with. */
  credentials: { accessKeyId: string; secretAccessKey: string };
  /** The one bucket's name. @default "cells" */
  bucketName?: string | undefined;
  /** @default "127.0.0.1": nobody but this machine. There is no TLS: put the server behind a proxy before you change it. */
  host?: string | undefined;
  /** 0 takes a free one. @default 0 */
  port?: number | undefined;
  /** The region that clients must sign for. @default "us-east-1" */
  region?: string | undefined;
  /** The largest object or part. @default 5_368_709_120 (5 GiB, as Amazon S3) */
  maxObjectBytes?: number | undefined;
  /** Told of failures that clients see as 500 or 507, for the log. @default nobody */
  onFailure?: ((error: Error) => void) | undefined;
}

/** A running server. */
export interface BucketServer extends AsyncDisposable {
  /** `http://host:port`, the clients' endpoint. */
  readonly endpoint: string;
  readonly bucketName: string;
  readonly host: string;
  readonly port: number;
  readonly region: string;
  /** Finishes what runs (at most 5 s), then stops. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts the server.
 * @throws BucketListenError (CELLKIT_BUCKET_LISTEN), BucketOptionError, BucketFormatError, BucketAccessDeniedError, …
 */
export async function serveBucket(options: ServeBucketOptions): Promise<BucketServer> {
  const { bucketName = "cells", host = "127.0.0.1", port = 0, region = "us-east-1" } = options;
  if (!/^[a-z0-9][a-z0-9.-]{0,62}$/.test(bucketName)) {
    throw new BucketOptionError(
      `bucketName is ${JSON.stringify(bucketName)}; it takes lower-case letters, digits, dots, hyphens`,
    );
  }
  if (options.credentials.accessKeyId === "" || options.credentials.secretAccessKey === "") {
    throw new BucketOptionError("credentials must not be empty");
  }
  const store = await ObjectStore.open(resolve(options.directory));
  const site: Site = {
    store,
    multipart: new MultipartRequests(store),
    bucketName,
    region,
    objectLimitBytes: options.maxObjectBytes ?? OBJECT_LIMIT_BYTES,
  };
  const service = new Service(
    site,
    new Authenticator(options.credentials, region),
    options.onFailure ?? (() => {}),
  );
  try {
    await listen(service.server, host, port);
  } catch (error) {
    await store.close();
    throw new BucketListenError(host, port, errnoOf(error) ?? String(error), { cause: error });
  }
  const address = service.server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= service.close().then(() => store.close());
    return closed;
  };
  return {
    endpoint: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    bucketName,
    host,
    port: address.port,
    region,
    close,
    [Symbol.asyncDispose]: close,
  };
}

class Service {
  readonly server: Server;
  readonly #site: Site;
  readonly #authenticator: Authenticator;
  readonly #onFailure: (error: Error) => void;
  #closing = false;

  constructor(site: Site, authenticator: Authenticator, onFailure: (error: Error) => void) {
    this.#site = site;
    this.#authenticator = authenticator;
    this.#onFailure = onFailure;
    this.server = createServer({
      maxHeaderSize: HEADER_LIMIT_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      noDelay: true,
    });
    this.server.maxConnections = CONNECTION_LIMIT_COUNT;
    this.server.timeout = IDLE_TIMEOUT_MS;
    this.server.on("request", (request, response) => void this.#serve(request, response, () => {}));
    this.server.on("checkContinue", (request, response) => {
      void this.#serve(request, response, () => response.writeContinue());
    });
    this.server.on("checkExpectation", (_request, response) => {
      response.writeHead(417, { connection: "close" }).end();
    });
    this.server.on("clientError", onClientError);
  }

  async close(): Promise<void> {
    this.#closing = true;
    const closed = new Promise<void>((done) => this.server.close(() => done()));
    this.server.closeIdleConnections();
    const timer = setTimeout(() => this.server.closeAllConnections(), CLOSE_TIMEOUT_MS);
    await closed;
    clearTimeout(timer);
  }

  async #serve(request: IncomingMessage, response: ServerResponse, askForBody: () => void): Promise<void> {
    const requestId = randomUUID();
    response.setHeader("x-amz-request-id", requestId);
    let asked = false;
    let answer: Answer;
    try {
      const head = parseHead(request);
      const signer = this.#authenticator.check(head, Date.now());
      refuseUnsupported(head);
      checkTarget(head, this.#site);
      const plan = planPayload(head, signer, bodyLimit(head, this.#site));
      askForBody();
      asked = true;
      answer = await answerRequest(head, new Payload(request, head, plan), this.#site);
    } catch (error) {
      answer = refusalAnswer(this.#refusalOf(error), requestId);
    }
    try {
      const waitsForBody = !asked && request.headers.expect !== undefined;
      await this.#send(request, response, answer, waitsForBody);
    } catch (error) {
      // The client went away, or the file could not be read after the head was sent: only the connection can tell.
      if (!response.writableEnded && !request.socket.destroyed) this.#onFailure(error as Error);
      response.destroy();
    }
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    answer: Answer,
    waitsForBody: boolean,
  ): Promise<void> {
    const { status, headers, body } = answer;
    // A refusal may come before Node has parsed a body that is here already.
    if (hasBody(request) && !request.complete) await setImmediate();
    const unread = hasBody(request) && !request.complete;
    if (this.#closing || unread) headers["connection"] = "close";
    if (body !== undefined && typeof body !== "string" && "object" in body) {
      try {
        response.writeHead(status, headers);
        await pipeline(Readable.from(body.object.read(body.start, body.end)), response);
      } finally {
        body.object.close();
      }
      return;
    }
    const bytes = request.method === "HEAD" || body === undefined ? new Uint8Array() : toBytes(body);
    if (status !== 204 && status !== 304) headers["content-length"] ??= String(bytes.length);
    response.writeHead(status, headers);
    if (!unread || waitsForBody) {
      response.end(bytes);
      return;
    }
    if (bytes.length > 0) response.write(bytes);
    else response.flushHeaders();
    await linger(request);
    response.end();
  }

  #refusalOf(error: unknown): RequestRefusal {
    if (error instanceof RequestRefusal) return error;
    const options = { cause: error };
    this.#onFailure(error as Error);
    if (error instanceof BucketFullError) {
      return new RequestRefusal(
        507,
        "InsufficientStorage",
        "The server's disk is full; the write was not made.",
        options,
      );
    }
    if (error instanceof BucketAccessDeniedError) {
      return new RequestRefusal(500, "InternalError", "The server may not access its directory.", options);
    }
    return new RequestRefusal(
      500,
      "InternalError",
      "The server failed; the write may have been made.",
      options,
    );
  }
}

function hasBody(request: IncomingMessage): boolean {
  return "transfer-encoding" in request.headers || (request.headers["content-length"] ?? "0") !== "0";
}

function toBytes(body: string | Uint8Array): Uint8Array {
  return typeof body === "string" ? Buffer.from(body, "utf8") : body;
}

/** Reads on for a moment and drops what comes. */
async function linger(request: IncomingMessage): Promise<void> {
  const done = Promise.withResolvers<void>();
  const timer = setTimeout(done.resolve, LINGER_TIMEOUT_MS);
  let left = LINGER_LIMIT_BYTES;
  request.on("data", (bytes: Buffer) => {
    left -= bytes.length;
    if (left < 0) done.resolve();
  });
  request.once("end", done.resolve);
  request.once("close", done.resolve);
  request.once("error", () => done.resolve());
  request.resume();
  await done.promise;
  clearTimeout(timer);
}

function onClientError(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [line, refusal] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? [
          "431 Request Header Fields Too Large",
          new RequestRefusal(
            431,
            "RequestHeaderSectionTooLarge",
            `The headers are larger than ${HEADER_LIMIT_BYTES} bytes.`,
          ),
        ]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? [
            "408 Request Timeout",
            new RequestRefusal(408, "RequestTimeout", "The request head took too long."),
          ]
        : ["400 Bad Request", new RequestRefusal(400, "BadRequest", "The request is not well-formed HTTP.")];
  const body = String(refusalAnswer(refusal, randomUUID()).body);
  socket.end(
    `HTTP/1.1 ${line}\r\nconnection: close\r\ncontent-type: application/xml\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((done, failed) => {
    server.once("error", failed);
    server.listen(port, host, () => {
      server.off("error", failed);
      done();
    });
  });
}
