// One request and its answer: read the body whole, send it on once, hand the answer back. Each step may be cut short by the
// client, the backend or a deadline; whichever comes first decides, and the client gets one answer.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Dispatcher, errors } from "undici";
import type { Backend } from "./backend.ts";
import type { ClientConnection, Served } from "./client-connection.ts";
import { maxBodyBytes } from "./core/decide-request.ts";
import { answeredFields, hasCertainEnd } from "./core/header-fields.ts";
import { ownAnswer, type Refusal } from "./core/refusal.ts";
import type { EdgeLimits } from "./limits.ts";

/** Ends a request to the backend that nobody waits for any more. */
const nobodyWaits = new DOMException("the client is gone, or was answered already", "AbortError");

/** How an exchange ended, for logs and metrics. */
export type Outcome =
  | { readonly kind: "forwarded"; readonly status: number }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  | { readonly kind: "unavailable"; readonly error: Error }
  | { readonly kind: "cut"; readonly error: Error | undefined };

/** What an exchange is made of. */
export interface ExchangeParts {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: ClientConnection;
  readonly limits: EdgeLimits;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly waitsForGoAhead: boolean;
  /** Told once. */
  onEnd(outcome: Outcome): void;
}

/** One request on its way. {@link refuse} or {@link forward} is called once, right after it was made. */
export class Exchange implements Served, Dispatcher.DispatchHandler {
  readonly #parts: ExchangeParts;
  #controller: Dispatcher.DispatchController | undefined;
  /** The client is gone or has its answer: what the backend says is of no interest. */
  #isOver = false;
  #outcome: Outcome = { kind: "cut", error: undefined };
  #status = 0;
  #fields: string[] = [];
  #held: Buffer[] = [];
  #heldBytes = 0;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
    const { response, connection, onEnd } = parts;
    response.once("close", () => {
      this.#isOver = true;
      this.#controller?.abort(nobodyWaits);
      onEnd(this.#outcome);
      connection.ended();
    });
  }

  get hasArrived(): boolean {
    return this.#parts.request.complete;
  }

  breakOff(refusal: Refusal): void {
    this.refuse(refusal === "timeout" ? "timeout" : "body-too-large", true);
  }

  /** Answers by itself. @param closes whether the connection is of no further use */
  refuse(refusal: Refusal, closes: boolean, outcome: Outcome = { kind: "refused", refusal }): void {
    const { id, request, response, connection } = this.#parts;
    if (this.#isOver) return;
    this.#isOver = true;
    this.#outcome = outcome;
    this.#controller?.abort(nobodyWaits);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (closes) connection.endAfterCurrent();
    const { status, contentType, body } = ownAnswer(refusal, request.headers.accept);
    this.#writeHead(status, [
      ...["Content-Type", contentType, "Content-Length", String(body.length)],
      ...["X-Request-Id", id],
    ]);
    response.write(body);
    if (request.complete || this.#parts.waitsForGoAhead) response.end();
    else this.#linger();
  }

  /** Reads the body, at most as long as bodies may be, and sends the request on. */
  forward(backend: Backend, fields: readonly string[], hasBody: boolean): void {
    const { request, response, waitsForGoAhead } = this.#parts;
    const send = (body?: Buffer) => {
      const { method = "", url: target = "" } = request;
      if (!this.#isOver) backend.send({ method, target, fields, body }, this);
    };
    if (!hasBody) {
      send();
      return;
    }
    if (waitsForGoAhead) response.writeContinue();
    const chunks: Buffer[] = [];
    let bodyBytes = 0;
    request.on("data", (chunk: Buffer) => {
      bodyBytes += chunk.length;
      if (bodyBytes <= maxBodyBytes) chunks.push(chunk);
      else this.refuse("body-too-large", true);
    });
    request.once("end", () => send(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bodyBytes)));
    // Broken off by the client: its connection's end closes the response.
    request.on("error", () => undefined);
  }

  /** No answer will come in time: answers by itself. @returns false when an answer has begun already */
  giveUp(): boolean {
    if (this.#isOver || this.#parts.response.headersSent) return false;
    const error = new DOMException("no answer in time", "TimeoutError");
    this.refuse("unavailable", true, { kind: "unavailable", error });
    return true;
  }

  /** Cuts the client off. */
  destroy(): void {
    this.#parts.request.socket.destroy();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(nobodyWaits);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const raw = (controller.rawHeaders ?? []) as readonly Buffer[];
    const fields = raw.map((part) => part.toString("latin1"));
    if (status >= 200 && !hasCertainEnd(status, fields)) {
      const error = new errors.NotSupportedError("the answer has neither a length nor plain chunks");
      this.refuse("unavailable", false, { kind: "unavailable", error });
      return;
    }
    this.#status = status;
    this.#fields = answeredFields(fields);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    const { response, limits } = this.#parts;
    if (response.headersSent) {
      if (response.write(chunk)) return;
      controller.pause();
      response.once("drain", () => controller.resume());
      return;
    }
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= limits.heldAnswerBytes) return;
    this.#writeHead(this.#status, this.#fields);
    for (const part of this.#held) response.write(part);
    this.#held = [];
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    const { response } = this.#parts;
    this.#outcome = { kind: "forwarded", status: this.#status };
    if (!response.headersSent)
      this.#writeHead(this.#status, fieldsOfWhole(this.#fields, this.#status, this.#heldBytes));
    this.#isOver = true;
    if (this.#held.length === 0) response.end();
    else response.end(this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return;
    if (this.#parts.response.headersSent) this.#cut(error);
    else this.refuse("unavailable", false, { kind: "unavailable", error });
  }

  /** Nobody may take a part of an answer for the whole. */
  #cut(error: Error): void {
    this.#outcome = { kind: "cut", error };
    this.destroy();
  }

  #writeHead(status: number, fields: string[]): void {
    const { response, connection } = this.#parts;
    response.writeHead(status, connection.isLast ? [...fields, "Connection", "close"] : fields);
  }

  /** The answer is written; it ends once the client has stopped sending, or has had its time. */
  #linger(): void {
    const { request, response, limits } = this.#parts;
    const { socket } = request;
    let readBytes = 0;
    const end = () => void response.end();
    if (socket.readableEnded) {
      end();
      return;
    }
    const timer = setTimeout(end, limits.lingerMs);
    socket.once("end", end);
    response.once("close", () => {
      clearTimeout(timer);
      socket.off("end", end);
    });
    request.on("error", () => undefined);
    request.once("end", end);
    request.on("data", (chunk: Buffer) => {
      readBytes += chunk.length;
      if (readBytes > limits.lingerBytes) response.end();
    });
  }
}

/** The fields of an answer that is there as a whole: its length is what came, not what was said (RFC 9110 section 8.6). */
function fieldsOfWhole(fields: readonly string[], status: number, bodyBytes: number): string[] {
  const kept = fields.filter((_, at) => (fields[at - (at % 2)] as string).toLowerCase() !== "content-length");
  return status === 204 || status === 304 ? kept : [...kept, "Content-Length", String(bodyBytes)];
}
