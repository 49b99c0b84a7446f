// One connection, one request: its head, its body, an answer, and an end that lets the answer arrive (execution API, section 2.1).
import type { Socket } from "node:net";
import { encodeAnswer, type Refusal, refusalAnswer } from "../core/answer.ts";
import { HeadReader, type RequestHead } from "../core/request-head.ts";
import type { Reply } from "../executions.ts";
import type { RequestRoute } from "../router-event.ts";
import type { Place } from "./running-limit.ts";
import { SocketInput } from "./socket-input.ts";

/** What is done with a request whose head is known. */
export type Handling =
  | { readonly kind: "refuse"; readonly route: RequestRoute; readonly refusal: Refusal }
  | {
      readonly kind: "run";
      readonly route: RequestRoute;
      /** How many bytes of body are read first. */
      readonly bodyBytes: number;
      /** Waits for room among the running requests. */
      enter(): Promise<Place>;
      /** Never rejects. Called once the body is whole, and there is room for one more request. */
      run(body: Buffer, place: Place): Promise<Reply | Refusal>;
    };

/** How a connection ended. */
export interface Outcome {
  readonly route: RequestRoute;
  /** Undefined: it ended without an answer. */
  readonly status: number | undefined;
  readonly refusal: Refusal | undefined;
}

/** What a connection is served with. */
export interface ConnectionContext {
  readonly limits: ConnectionLimits;
  /** Judges a head. Never rejects. */
  handle(head: RequestHead): Promise<Handling>;
  /** Counts an answer's bytes until they were written; answers what ends that. */
  hold(bytes: number): () => void;
}

/** How long a caller may take; see `RouterLimits`. */
interface ConnectionLimits {
  /** Each wait for bytes to come or go. */
  readonly operationMs: number;
  readonly headMs: number;
  readonly requestMs: number;
  readonly writeMs: number;
}

/** What is discarded behind an answer, so that unread bytes do not make TCP take the answer back. */
const discardBytes = 65_536;
const discardMs = 100;

/** One connection of the router's listener. */
export class Connection {
  readonly #socket: Socket;
  readonly #input: SocketInput;
  readonly #context: ConnectionContext;
  readonly #startedMs = performance.now();
  #phase: "receiving" | "waiting" | "running" | "answering" = "receiving";

  constructor(socket: Socket, context: ConnectionContext) {
    this.#socket = socket;
    this.#context = context;
    this.#input = new SocketInput(socket, context.limits.operationMs);
  }

  /** `receiving` until the request is whole, `waiting` for room, `running`, or `answering`. */
  get phase(): string {
    return this.#phase;
  }

  /** Ends it where its request is not whole yet. */
  closeIfReceiving(): void {
    if (this.#phase !== "receiving") return;
    this.#input.close();
    this.#socket.destroy();
  }

  /** Cuts it off. */
  destroy(): void {
    this.#input.close();
    this.#socket.destroy();
  }

  /** Serves the one request. Never rejects but for defects; the socket is gone afterwards. */
  async serve(): Promise<Outcome> {
    const silent: Outcome = { route: "none", status: undefined, refusal: undefined };
    const { headMs, requestMs } = this.#context.limits;
    const giveUp = () => this.#input.close();
    let arrival = setTimeout(giveUp, Math.min(headMs, requestMs));
    try {
      const head = await this.#readHead();
      clearTimeout(arrival);
      if (head === "gone") return silent;
      if (head === "silent") return await this.#finish(silent, undefined);
      if (typeof head === "object" && "refusal" in head) return await this.#refuse("none", head.refusal);
      const handling = await this.#context.handle(head);
      const { route } = handling;
      if (handling.kind === "refuse") return await this.#refuse(route, handling.refusal);
      arrival = setTimeout(giveUp, this.#startedMs + requestMs - performance.now());
      const body = await this.#readBody(handling.bodyBytes);
      clearTimeout(arrival);
      if (body === undefined) return { ...silent, route };
      const reply = await this.#run(handling.enter, (place) => handling.run(body, place));
      if (reply === undefined) return { ...silent, route };
      if (typeof reply === "string") return await this.#refuse(route, reply);
      return await this.#pass(route, reply);
    } finally {
      clearTimeout(arrival);
      this.#socket.destroy();
    }
  }

  async #readHead(): Promise<RequestHead | { refusal: Refusal } | "silent" | "gone"> {
    const reader = new HeadReader();
    for (;;) {
      const chunk = await this.#input.next();
      if (chunk === "end") return "silent";
      if (typeof chunk === "string") return "gone";
      const read = reader.push(chunk);
      if (read.kind === "silent") return "silent";
      if (read.kind === "more") continue;
      this.#input.unread(read.rest);
      return read.kind === "head" ? read.head : { refusal: read.refusal };
    }
  }

  /** undefined: it did not come wholly. */
  async #readBody(bytes: number): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    let missing = bytes;
    while (missing > 0) {
      const chunk = await this.#input.next();
      if (typeof chunk === "string") return undefined;
      chunks.push(chunk.subarray(0, missing));
      this.#input.unread(chunk.subarray(missing));
      missing -= Math.min(missing, chunk.length);
    }
    return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
  }

  /** undefined: the caller was gone before there was room, so nothing was done. */
  async #run(
    enter: () => Promise<Place>,
    work: (place: Place) => Promise<Reply | Refusal>,
  ): Promise<Reply | Refusal | undefined> {
    this.#phase = "waiting";
    const place = await enter();
    try {
      if (this.#socket.destroyed) return undefined;
      this.#phase = "running";
      return await work(place);
    } finally {
      place.leave();
    }
  }

  async #pass(route: RequestRoute, { status, bytes }: Reply): Promise<Outcome> {
    const release = this.#context.hold(bytes.length);
    try {
      return await this.#finish({ route, status, refusal: undefined }, bytes);
    } finally {
      release();
    }
  }

  #refuse(route: RequestRoute, refusal: Refusal): Promise<Outcome> {
    const answer = refusalAnswer(refusal);
    return this.#finish({ route, status: answer.status, refusal }, encodeAnswer(answer));
  }

  /** Writes the answer, ends our side, and discards what still comes, for a moment. */
  async #finish(outcome: Outcome, answer: Uint8Array | undefined): Promise<Outcome> {
    this.#phase = "answering";
    if (!(await this.#writeLast(answer))) return { ...outcome, status: undefined };
    const timer = setTimeout(() => this.#input.close(), discardMs);
    let discarded = 0;
    while (discarded <= discardBytes) {
      const chunk = await this.#input.next();
      if (typeof chunk === "string") break;
      discarded += chunk.length;
    }
    clearTimeout(timer);
    return outcome;
  }

  /** Whether it was written wholly: the system has it, and the end behind it. */
  #writeLast(bytes: Uint8Array | undefined): Promise<boolean> {
    const socket = this.#socket;
    if (socket.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (isWritten: boolean) => {
        clearTimeout(timer);
        socket.setTimeout(0);
        socket.off("timeout", onTrouble);
        socket.off("close", onTrouble);
        resolve(isWritten);
      };
      const onTrouble = () => settle(false);
      const { operationMs, writeMs } = this.#context.limits;
      const timer = setTimeout(onTrouble, writeMs);
      socket.once("timeout", onTrouble);
      socket.once("close", onTrouble);
      socket.setTimeout(operationMs);
      if (bytes === undefined) socket.end(() => settle(true));
      else socket.end(bytes, () => settle(true));
    });
  }
}
