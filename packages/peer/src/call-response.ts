// The answer inside a tunnel: it carries the version of the protocol, nothing that an application puts in can pass for a
// word of the node (spec §14, weakness 15), and it ends where its head says, so that it cannot pass for the next answer.

import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
} from "node:http";
import { isHopByHop, isReservedHeader } from "./call-headers.ts";
import { peerHeader } from "./core/constants.ts";
import { routeErrorHeader, staleOwnerMarker } from "./core/tunnel-names.ts";
import { IrregularAnswerError } from "./errors.ts";
import { tunnelVersionText } from "./wire.ts";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];
type Done = (error?: Error | null) => void;

/** What a caller gets to know of a handler that failed. */
export const failedText = "cell Worker failed";
const lowestStatus = 200;
const highestStatus = 599;

export class CallResponse extends ServerResponse<IncomingMessage> {
  /** Told what the handler did that is no answer; the caller got a 500, or the tunnel was cut. */
  onIrregular: ((error: IrregularAnswerError) => void) | undefined;
  #isStale = false;
  /** Of the body, as the head says; undefined where the framing is not the handler's. */
  #declaredBytes: number | undefined;
  #bodyBytes = 0;
  /** What the handler still writes goes nowhere. */
  #isOver = false;

  /** Answers that this node does not own the cell and nothing ran: the one way to the stale marker. */
  answerStale(text: string): void {
    if (this.#isOver) return;
    this.#isStale = true;
    this.answerForHandler(409, text);
  }

  /** Answers in the node's own words: nothing that the handler has set so far goes out. Before the head is sent only. */
  answerForHandler(status: number, text: string): void {
    if (!this.headersSent) for (const name of this.getHeaderNames()) this.removeHeader(name);
    this.statusMessage = "";
    this.#head(status, { "content-type": "application/json" });
    this.#isOver = true;
    super.end(text);
  }

  override writeHead(status: number, reason?: string, headers?: Headers): this;
  override writeHead(status: number, headers?: Headers): this;
  override writeHead(status: number, reasonOrHeaders?: string | Headers, headers?: Headers): this {
    if (this.#isOver) return this;
    const reason = typeof reasonOrHeaders === "string" ? reasonOrHeaders : undefined;
    const given = typeof reasonOrHeaders === "string" ? headers : (reasonOrHeaders ?? headers);
    if (!(status >= lowestStatus && status <= highestStatus)) return this.#refuse(`its status is ${status}`);
    for (const name of this.getHeaderNames()) if (isNodesOwn(name)) this.removeHeader(name);
    const length = lengthsOf(given) ?? this.getHeader("content-length");
    if (length !== undefined) {
      if (!isLength(String(length))) return this.#refuse(`its content-length is ${length}`);
      const hasBody = this.req.method !== "HEAD" && status !== 204 && status !== 304;
      if (hasBody) this.#declaredBytes = Number(length);
    }
    return this.#head(status, given, reason);
  }

  /** Node takes them for what they are called; a handler has no more to say here than in the head. */
  override addTrailers(given: OutgoingHttpHeaders | readonly [string, string][]): void {
    const pairs: [string, string][] = [];
    for (const [name, value] of Array.isArray(given) ? given : Object.entries(given)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && !isNodesOwn(name)) pairs.push([name, String(one)]);
      }
    }
    super.addTrailers(pairs);
  }

  /** Node sends such a head without a look at it, and callers pass over it. */
  override writeEarlyHints(_hints: Record<string, string | string[]>, callback?: () => void): void {
    if (callback !== undefined) process.nextTick(callback);
  }

  override flushHeaders(): void {
    if (this.#isOver) return;
    this.#begin();
    if (this.#isOver) return;
    if (this.#declaredBytes === 0) this.#complete();
    else super.flushHeaders();
  }

  override write(chunk: unknown, encodingOrDone?: BufferEncoding | Done, done?: Done): boolean {
    const encoding = typeof encodingOrDone === "string" ? encodingOrDone : undefined;
    const callback = typeof encodingOrDone === "function" ? encodingOrDone : done;
    if (!this.#isOver) this.#begin();
    if (this.#isOver) return this.#dropped(chunk, callback);
    if (this.#declaredBytes === undefined) return super.write(chunk, encoding ?? "utf8", callback);
    this.#bodyBytes += bytesOf(chunk, encoding);
    if (this.#bodyBytes > this.#declaredBytes) return this.#cut(callback);
    if (this.#bodyBytes < this.#declaredBytes) return super.write(chunk, encoding ?? "utf8", callback);
    // The caller has the whole answer with this and may put its next call into the tunnel: what follows is not of it.
    this.#complete(chunk, encoding, callback);
    return true;
  }

  override end(chunkOrDone?: unknown, encodingOrDone?: BufferEncoding | Done, last?: Done): this {
    if (typeof chunkOrDone === "function") return this.end(undefined, undefined, chunkOrDone as Done);
    if (typeof encodingOrDone === "function") return this.end(chunkOrDone, undefined, encodingOrDone);
    const [chunk, encoding, done] = [chunkOrDone ?? undefined, encodingOrDone, last];
    // Without a head node:http counts the bytes of the only piece itself, unless the handler has.
    const needsHead = this.hasHeader("content-length") || !this.#hasFairStatus;
    if (!this.#isOver && needsHead) this.#begin();
    if (this.#isOver) {
      this.#dropped(chunk, done);
      return this;
    }
    if (this.#declaredBytes !== undefined) {
      if (chunk !== undefined) this.#bodyBytes += bytesOf(chunk, encoding);
      if (this.#bodyBytes !== this.#declaredBytes) {
        this.#cut(done);
        return this;
      }
    }
    this.#complete(chunk, encoding, done);
    return this;
  }

  get #hasFairStatus(): boolean {
    return this.headersSent || (this.statusCode >= lowestStatus && this.statusCode <= highestStatus);
  }

  #begin(): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
  }

  #complete(chunk?: unknown, encoding?: BufferEncoding, done?: Done): void {
    // What node:http writes here passes through `writeHead` above if there is no head yet: over is it after that.
    if (chunk === undefined) super.end(done);
    else super.end(chunk, encoding ?? "utf8", done);
    this.#isOver = true;
  }

  /** The handler's answer cannot be sent, and nothing of it was. */
  #refuse(reason: string): this {
    this.shouldKeepAlive = false;
    this.answerForHandler(500, failedText);
    this.onIrregular?.(new IrregularAnswerError(reason));
    return this;
  }

  /** A part of the answer is out, and the rest is not what the head says: only the tunnel's end tells the caller. */
  #cut(done: Done | undefined): false {
    this.#isOver = true;
    const error = new IrregularAnswerError(
      `its content-length is ${this.#declaredBytes} and its body has ${this.#bodyBytes} bytes`,
    );
    this.req.socket.destroy();
    if (done !== undefined) process.nextTick(done, error);
    this.onIrregular?.(error);
    return false;
  }

  #dropped(chunk: unknown, done: Done | undefined): true {
    const bytes = chunk === undefined || chunk === null ? 0 : bytesOf(chunk, undefined);
    if (done !== undefined) process.nextTick(done);
    if (bytes > 0) this.onIrregular?.(new IrregularAnswerError(`it wrote ${bytes} bytes behind its end`));
    return true;
  }

  #head(status: number, given: Headers | undefined, reason?: string): this {
    const own = this.#own(given);
    return reason === undefined ? super.writeHead(status, own) : super.writeHead(status, reason, own);
  }

  #own(given: Headers | undefined): Headers {
    if (Array.isArray(given)) {
      const own: OutgoingHttpHeader[] = [peerHeader.version, tunnelVersionText];
      for (const [name, value] of pairsOf(given)) if (!isNodesOwn(name)) own.push(name, value);
      return own;
    }
    const own: OutgoingHttpHeaders = {};
    for (const name in given) if (!isNodesOwn(name)) own[name] = given[name];
    own[peerHeader.version] = tunnelVersionText;
    if (this.#isStale) own[routeErrorHeader] = staleOwnerMarker;
    return own;
  }
}

/** Whether only the node may say it: a word of nodes, or how the message is framed and the tunnel kept. */
function isNodesOwn(name: string): boolean {
  return isReservedHeader(name) || isHopByHop(name);
}

function* pairsOf(given: OutgoingHttpHeader[]): Generator<[string, OutgoingHttpHeader]> {
  const flat = (given.some(Array.isArray) ? given.flat() : given) as OutgoingHttpHeader[];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [name, value] = [flat[i], flat[i + 1]];
    if (name !== undefined && value !== undefined) yield [String(name), value];
  }
}

/** The content-length, of several ones all; undefined when there is none. */
function lengthsOf(given: Headers | undefined): string | undefined {
  const pairs = Array.isArray(given) ? pairsOf(given) : Object.entries(given ?? {});
  const lengths: string[] = [];
  for (const [name, value] of pairs) {
    const isIt = name.length === 14 && name.toLowerCase() === "content-length";
    if (isIt && value !== undefined) lengths.push(String(value));
  }
  return lengths.length === 0 ? undefined : lengths.join(", ");
}

function isLength(text: string): boolean {
  return /^\d{1,15}$/.test(text);
}

function bytesOf(chunk: unknown, encoding: BufferEncoding | undefined): number {
  if (typeof chunk === "string") return Buffer.byteLength(chunk, encoding);
  return chunk instanceof Uint8Array ? chunk.byteLength : 0;
}
