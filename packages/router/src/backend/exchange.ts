// One call to a dispatcher: written once, and read until the dispatcher closes. No retry of any kind, but for calls that may be repeated
// freely, on a connection that was kept and turns out to have been closed.
import { isUtf8 } from "node:buffer";
import { connect, type LookupFunction, type Socket } from "node:net";
import { type AnswerHead, readAnswerHead } from "../core/answer-head.ts";
import { type AnswerFraming, announcedBytes, closingHead, framingOf } from "../core/backend-call.ts";
import type { BackendOrigin } from "../core/origin.ts";
import { BackendError } from "../errors.ts";
import { AnswerBytes } from "./answer-bytes.ts";
import { type ByteBudget, freeBytes } from "./byte-budget.ts";
import type { KeptConnections } from "./kept-connections.ts";

/** A dispatcher's whole answer. */
export interface BackendAnswer {
  readonly status: number;
  /** As it came, status line and headers included, but without heads of 1xx before it. */
  readonly bytes: Buffer;
  /** Where its body begins in `bytes`. */
  readonly bodyAt: number;
}

/** What bounds one exchange. */
export interface ExchangeBounds {
  /** Name lookup and connecting. */
  readonly connectMs: number;
  /** Each wait for bytes to move. */
  readonly operationMs: number;
  /** From the connection to the end of the answer; undefined: no bound besides the others. */
  readonly answerMs?: number;
  /** All of it, from the lookup to the end of the answer: what comes byte by byte is not waited for without end. */
  readonly totalMs: number;
  /** The whole answer, head included. */
  readonly maxBytes: number;
}

/** What all exchanges of a router share. */
export interface ExchangeContext {
  /** For what answers hold beyond {@link freeBytes}. */
  readonly budget: ByteBudget;
  readonly lookup: LookupFunction;
  /** Ends the exchange; it counts as failed. */
  readonly signal: AbortSignal;
}

/** What {@link exchange} takes beside the call. */
export interface ExchangeOptions {
  readonly bounds: ExchangeBounds;
  readonly context: ExchangeContext;
  /** For calls that may be repeated: connections that were kept, and where to keep this one. */
  readonly kept?: KeptConnections | undefined;
  /**
   * What stands in an answer to this call, and in no other's. On a connection that was kept, an answer without it may be one to the call
   * before, of a dispatcher that answers twice: the call is repeated on a new one.
   */
  readonly mark?: string | undefined;
}

/**
 * Sends a call and reads its answer.
 * @param sent the bytes of the call
 * @throws BackendError (CELLKIT_ROUTER_BACKEND) when there is no usable answer; its `sent` says whether the call may have arrived
 */
export async function exchange(
  origin: BackendOrigin,
  sent: Uint8Array,
  options: ExchangeOptions,
): Promise<BackendAnswer> {
  const parts = { origin, sent, ...options };
  const kept = options.kept?.take(origin.origin);
  const answer = kept && (await exchangeOn(kept, parts));
  // On a new connection there is always an answer, or an error.
  return answer ?? (exchangeOn(undefined, parts) as Promise<BackendAnswer>);
}

interface Parts extends ExchangeOptions {
  readonly origin: BackendOrigin;
  readonly sent: Uint8Array;
}

/** @returns undefined when the connection was a kept one, and closed before a byte came, or brought what may be another call's answer */
function exchangeOn(kept: Socket | undefined, parts: Parts): Promise<BackendAnswer | undefined> {
  return new Promise((resolve, reject) => {
    new Exchange(parts, { kept, resolve, reject });
  });
}

interface Ends {
  readonly kept: Socket | undefined;
  readonly resolve: (answer: BackendAnswer | undefined) => void;
  readonly reject: (error: BackendError) => void;
}

class Exchange {
  readonly #parts: Parts;
  readonly #ends: Ends;
  readonly #socket: Socket;
  readonly #answer = new AnswerBytes();
  readonly #onAbort = () => this.#fail("was not waited for: the router stops");
  #announced: number | undefined;
  #budgetBytes = 0;
  #isConnected = false;
  #scannedBytes = 0;
  #head: AnswerHead | undefined;
  #framing: AnswerFraming | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #totalTimer: NodeJS.Timeout;

  constructor(parts: Parts, ends: Ends) {
    this.#parts = parts;
    this.#ends = ends;
    const { totalMs } = parts.bounds;
    this.#totalTimer = setTimeout(() => this.#fail(`was not done within ${Math.round(totalMs)} ms`), totalMs);
    this.#socket = ends.kept ?? this.#connect();
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("end", () => this.#end());
    this.#socket.on("error", (cause: NodeJS.ErrnoException) =>
      this.#fail(
        `${this.#isConnected ? "broke the connection" : "cannot be connected to"} (${cause.code ?? cause.name})`,
        cause,
      ),
    );
    parts.context.signal.addEventListener("abort", this.#onAbort);
    if (parts.context.signal.aborted) this.#onAbort();
    else if (ends.kept !== undefined) this.#connected();
  }

  #connect(): Socket {
    const { origin, bounds, context } = this.#parts;
    this.#timer = setTimeout(
      () => this.#fail(`did not accept a connection within ${bounds.connectMs} ms`),
      bounds.connectMs,
    );
    // The first address alone is tried, as the original does.
    const socket = connect({
      host: origin.host,
      port: origin.port,
      noDelay: true,
      autoSelectFamily: false,
      lookup: context.lookup,
    });
    return socket.on("connect", () => this.#connected());
  }

  #connected(): void {
    clearTimeout(this.#timer);
    this.#isConnected = true;
    const { operationMs, answerMs } = this.#parts.bounds;
    this.#socket.setTimeout(operationMs, () => this.#fail(`moved no byte for ${operationMs} ms`));
    if (answerMs !== undefined)
      this.#timer = setTimeout(() => this.#fail(`did not answer within ${answerMs} ms`), answerMs);
    this.#socket.write(this.#parts.sent);
  }

  #take(chunk: Buffer): void {
    const byteCount = this.#answer.length + chunk.length;
    const { maxBytes } = this.#parts.bounds;
    if (byteCount > maxBytes) {
      this.#fail(`answered more than ${maxBytes} bytes`);
      return;
    }
    const wanted = Math.max(0, byteCount - freeBytes) - this.#budgetBytes;
    if (wanted > 0 && !this.#parts.context.budget.take(wanted)) {
      this.#fail("answered more than there is memory for: many large answers at once");
      return;
    }
    this.#budgetBytes += Math.max(0, wanted);
    if (this.#answer.length === 0) this.#announced = announcedBytes(chunk);
    this.#answer.add(chunk, this.#announced);
    if (this.#parts.kept !== undefined) this.#endIfWhole();
  }

  /** Ends it where the answer is whole though the connection is not closed. */
  #endIfWhole(): void {
    if (!this.#readHead() || this.#head === undefined) return;
    const { at, bodyAt } = this.#head;
    this.#framing ??= framingOf(this.#answer.whole.toString("latin1", at, bodyAt - 4));
    const { bytes, keeps } = this.#framing;
    if (bytes !== undefined && at + bytes === this.#answer.length) this.#end(keeps);
  }

  /** Whether what came may be an answer; if it is none, the exchange has failed. */
  #readHead(): boolean {
    if (this.#head !== undefined) return true;
    const read = readAnswerHead(this.#answer.whole, this.#scannedBytes);
    if (read.kind === "head") this.#head = read;
    else if (read.kind === "more") this.#scannedBytes = read.at;
    else this.#fail("answered what does not begin as HTTP does");
    return read.kind !== "none";
  }

  /** What a caller gets: the answer as it came, unless it says that its connection stays. */
  #finished({ status, at, bodyAt }: AnswerHead, isKept: boolean): BackendAnswer {
    const bytes = this.#answer.whole.subarray(at);
    if (!isKept) return { status, bytes, bodyAt: bodyAt - at };
    const head = closingHead(bytes.toString("latin1", 0, bodyAt - at - 4));
    const headBytes = Buffer.from(`${head}\r\n\r\n`, "latin1");
    return {
      status,
      bytes: Buffer.concat([headBytes, bytes.subarray(bodyAt - at)]),
      bodyAt: headBytes.length,
    };
  }

  #end(isKept = false): void {
    const isReused = this.#ends.kept !== undefined;
    if (isReused && this.#answer.length === 0) {
      this.#finish(false);
      this.#ends.resolve(undefined);
      return;
    }
    if (!this.#readHead()) return;
    const { mark } = this.#parts;
    const bytes = this.#answer.whole;
    if (this.#head === undefined) this.#fail("closed before the head of its answer was whole");
    else if (!isUtf8(bytes)) this.#fail("answered what is not UTF-8");
    else if (isReused && mark !== undefined && !bytes.includes(mark, this.#head.bodyAt)) {
      this.#finish(false);
      this.#ends.resolve(undefined);
    } else {
      this.#finish(isKept);
      this.#ends.resolve(this.#finished(this.#head, isKept));
    }
  }

  #fail(problem: string, cause?: unknown): void {
    // A kept connection that breaks before a byte came was closed while it was kept.
    const isStale = this.#ends.kept !== undefined && this.#answer.length === 0 && cause !== undefined;
    this.#finish(false);
    if (isStale) {
      this.#ends.resolve(undefined);
      return;
    }
    const sent = this.#isConnected ? "maybe" : "no";
    this.#ends.reject(new BackendError(this.#parts.origin.origin, problem, sent, { cause }));
  }

  #finish(isKept: boolean): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#totalTimer);
    const { context, kept, origin } = this.#parts;
    context.signal.removeEventListener("abort", this.#onAbort);
    this.#socket.removeAllListeners();
    if (isKept && kept !== undefined) kept.give(origin.origin, this.#socket);
    else this.#socket.on("error", () => undefined).destroy();
    context.budget.give(this.#budgetBytes);
    this.#budgetBytes = 0;
  }
}
