/** HTTP around the answers: authenticates a head before a byte of its body is read, and closes without losing answers. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { BucketAccessDeniedError, BucketFullError, RequestRefusal } from "../errors.ts";
import { type Answer, refusalAnswer } from "./answer.ts";
import type { Authenticator } from "./authenticate.ts";
import { answerClientError, HEADER_LIMIT_BYTES } from "./client-error.ts";
import { Payload, planPayload } from "./payload.ts";
import { parseHead, refuseUnsupported } from "./request-head.ts";
import { answerRequest, bodyLimit, checkTarget, type Site } from "./route.ts";

const HEADERS_TIMEOUT_MS = 30_000;
/** A head and its whole body. */
const REQUEST_TIMEOUT_MS = 3_600_000;
/** Longer than clients keep theirs, so that no request meets a closing connection. */
const KEEP_ALIVE_TIMEOUT_MS = 120_000;
/** A connection on which nothing moves. */
const IDLE_TIMEOUT_MS = 150_000;
const CONNECTION_LIMIT_COUNT = 2_048;
const CLOSE_TIMEOUT_MS = 750;
/** What is still read from a client after it was refused, so that it sees the answer instead of a reset. */
const LINGER_LIMIT_BYTES = 8 * 1024 * 1024;
const LINGER_TIMEOUT_MS = 2_000;

/** One HTTP server on one site. */
export class Service {
  readonly server: Server;
  readonly #site: Site;
  readonly #authenticator: Authenticator;
  readonly #onFailure: (error: Error) => void;
  /** The latest answer on each connection. */
  readonly #responses = new WeakMap<Socket, ServerResponse>();
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
    this.server.on("clientError", (error, socket) => {
      answerClientError(error, socket as Socket, this.#responses.get(socket as Socket));
    });
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
    this.#responses.set(request.socket, response);
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
