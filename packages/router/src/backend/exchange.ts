// One call to a dispatcher on a connection of its own: written once, and read until the dispatcher closes. No retry of any kind.
import { isUtf8 } from "node:buffer";
import { connect, type LookupFunction, type Socket } from "node:net";
import { bodyStart, statusOf } from "../core/backend-call.ts";
import type { BackendOrigin } from "../core/origin.ts";
import { BackendError } from "../errors.ts";
import type { ByteBudget } from "./byte-budget.ts";

/** A dispatcher's whole answer. */
export interface BackendAnswer {
  /** 502 where its first line says none. */
  readonly status: number;
  /** As it came, status line and headers included. */
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
  /** The whole answer, head included. */
  readonly maxBytes: number;
}

/** What all exchanges of a router share. */
export interface ExchangeContext {
  /** For what answers hold beyond {@link freeBytes}. */
  readonly budget: ByteBudget;
  readonly lookup: LookupFunction | undefined;
  /** Ends the exchange; it counts as failed. */
  readonly signal: AbortSignal;
}

/** What an answer may hold without asking the shared budget. */
export const freeBytes = 65_536;

/**
 * Sends a call and reads its answer.
 * @param sent the bytes of the call
 * @throws BackendError (CELLKIT_ROUTER_BACKEND) when there is no usable answer; its `sent` says whether the call may have arrived
 */
export function exchange(
  origin: BackendOrigin,
  sent: Uint8Array,
  bounds: ExchangeBounds,
  context: ExchangeContext,
): Promise<BackendAnswer> {
  return new Promise((resolve, reject) => {
    new Exchange({ origin, sent, bounds, context, resolve, reject });
  });
}

interface Parts {
  readonly origin: BackendOrigin;
  readonly sent: Uint8Array;
  readonly bounds: ExchangeBounds;
  readonly context: ExchangeContext;
  readonly resolve: (answer: BackendAnswer) => void;
  readonly reject: (error: BackendError) => void;
}

class Exchange {
  readonly #parts: Parts;
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  readonly #onAbort = () => this.#fail("was not waited for: the router stops");
  #byteCount = 0;
  #budgetBytes = 0;
  #isConnected = false;
  #timer: NodeJS.Timeout;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { origin, bounds, context } = parts;
    this.#timer = setTimeout(
      () => this.#fail(`did not accept a connection within ${bounds.connectMs} ms`),
      bounds.connectMs,
    );
    // The first address alone is tried, as the original does.
    this.#socket = connect({
      host: origin.host,
      port: origin.port,
      noDelay: true,
      autoSelectFamily: false,
      ...(context.lookup && { lookup: context.lookup }),
    });
    this.#socket.on("connect", () => this.#connected());
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#socket.on("end", () => this.#end());
    this.#socket.on("error", (cause) =>
      this.#fail(this.#isConnected ? "broke the connection" : "cannot be connected to", cause),
    );
    context.signal.addEventListener("abort", this.#onAbort);
    if (context.signal.aborted) this.#onAbort();
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
    this.#byteCount += chunk.length;
    const { maxBytes } = this.#parts.bounds;
    if (this.#byteCount > maxBytes) {
      this.#fail(`answered more than ${maxBytes} bytes`);
      return;
    }
    const wanted = Math.max(0, this.#byteCount - freeBytes) - this.#budgetBytes;
    if (wanted > 0 && !this.#parts.context.budget.take(wanted)) {
      this.#fail("answered more than there is memory for: many large answers at once");
      return;
    }
    this.#budgetBytes += Math.max(0, wanted);
    this.#chunks.push(chunk);
  }

  #end(): void {
    const bytes = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
    const bodyAt = bodyStart(bytes);
    if (bodyAt === undefined) this.#fail("closed before the head of its answer was whole");
    else if (!isUtf8(bytes)) this.#fail("answered what is not UTF-8");
    else {
      this.#finish();
      this.#parts.resolve({ status: statusOf(bytes), bytes, bodyAt });
    }
  }

  #fail(problem: string, cause?: unknown): void {
    this.#finish();
    const sent = this.#isConnected ? "maybe" : "no";
    this.#parts.reject(new BackendError(this.#parts.origin.origin, problem, sent, { cause }));
  }

  #finish(): void {
    clearTimeout(this.#timer);
    this.#parts.context.signal.removeEventListener("abort", this.#onAbort);
    this.#socket.destroy();
    this.#parts.context.budget.give(this.#budgetBytes);
    this.#budgetBytes = 0;
  }
}
