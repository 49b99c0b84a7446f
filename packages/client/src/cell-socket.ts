// The public class: events, iterators, the send queue and the promises, around a link that keeps a connection alive.
import { type BinaryType, toArrayBuffer, toBinary } from "./cell-socket-binary.ts";
import { publish } from "./cell-socket-channels.ts";
import { checkedCloseCode, checkedReason, closedError } from "./cell-socket-close.ts";
import type { Connection, ConnectionClose } from "./cell-socket-connection.ts";
import { type ResolvedSocketOptions, resolveSocketOptions } from "./cell-socket-defaults.ts";
import { Dialler } from "./cell-socket-dialler.ts";
import {
  type CellCloseEvent,
  CellErrorEvent,
  CellMessageEvent,
  CellReconnectingEvent,
  type CellSocketEvents,
  CellSocketTarget,
} from "./cell-socket-events.ts";
import { greet } from "./cell-socket-greeting.ts";
import { type LinkLoss, SocketLink } from "./cell-socket-link.ts";
import { socketNodesOf } from "./cell-socket-nodes.ts";
import type { CellSocketOptions, SendData, SocketTarget } from "./cell-socket-options.ts";
import { Outbox } from "./cell-socket-outbox.ts";
import { Readers } from "./cell-socket-readers.ts";
import { pathOf } from "./cell-socket-target.ts";
import { Waiters } from "./cell-socket-waiters.ts";
import type { Fleet } from "./fleet.ts";

/**
 * - `connecting`: it was not open yet. `open`: messages flow.
 * - `reconnecting`: the connection was lost and another is dialled, or about to be. `migrating`: the connection is being
 *   exchanged because its node leaves.
 * - `closing`: `close()` was called. `closed`: it is over.
 */
export type CellSocketState = "connecting" | "open" | "reconnecting" | "migrating" | "closing" | "closed";

const READY_STATES = {
  connecting: 0,
  reconnecting: 0,
  migrating: 0,
  open: 1,
  closing: 2,
  closed: 3,
} as const;

/**
 * A WebSocket to a cell that outlives its connections: it goes to another node when one drains, dies or refuses, notices
 * half-open connections, and keeps the order of what is sent. What was handed to a connection that then died is not sent
 * again: only the application can know whether it arrived.
 *
 * Events: `open` (after every connect), `message`, `reconnecting`, `error`, `close` (once, at the end). It is also an async
 * iterable of messages; the iteration goes on over reconnects, ends when the socket is closed, and throws when the socket
 * failed. A socket keeps the process alive until it is closed, unless `unref` was called. Closing the fleet closes no open
 * socket, but none of its sockets dials after that.
 */
export class CellSocket extends CellSocketTarget implements AsyncIterable<string | ArrayBuffer> {
  /** The form of binary `message` events. Iterators always give `ArrayBuffer`. */
  binaryType: BinaryType = "arraybuffer";
  readonly #options: ResolvedSocketOptions;
  readonly #link: SocketLink;
  readonly #outbox: Outbox;
  readonly #readers: Readers;
  readonly #opened = new Waiters();
  readonly #signal: AbortSignal | undefined;
  readonly #over: Promise<CellCloseEvent>;
  #resolveOver: (event: CellCloseEvent) => void = () => {};
  #state: CellSocketState = "connecting";
  #everOpen = false;
  #heeded = false;
  #paused = false;
  #protocol = "";
  #rttMs: number | undefined;
  #warned = false;
  #error: unknown;

  /**
   * @param target a path like `/rooms/7`, or an absolute URL on the fleet's authority; a function is asked for every dial
   * @throws ConfigurationError (`CELLKIT_CLIENT_CONFIG`) for a target or an option that cannot work
   */
  constructor(fleet: Fleet, target: SocketTarget, options: CellSocketOptions = {}) {
    super();
    const nodes = socketNodesOf(fleet);
    if (typeof target === "string") pathOf(target, nodes.authority);
    const resolved = resolveSocketOptions(options, typeof target === "function");
    this.#options = resolved;
    this.#over = new Promise((resolve) => {
      this.#resolveOver = resolve;
    });
    this.#outbox = new Outbox(resolved, () => nodes.now());
    this.#readers = new Readers(resolved.receive, () => this.#applyPause());
    this.#link = new SocketLink(nodes, new Dialler(nodes, target, resolved), resolved, {
      connected: (connection, attempt) => this.#connected(connection, attempt),
      disconnected: (node, close) => this.#disconnected(node, close),
      waiting: (loss, attempt, delayMs) => this.#waiting(loss, attempt, delayMs),
      migrating: (node) => this.#migrating(node),
      ended: (event) => this.#ended(event),
      text: (text, sizeBytes) => this.#received(text, sizeBytes),
      binary: (data) => this.#received(data, data.length),
      flushed: () => this.#outbox.flush(),
      pinged: (node, result) => this.#pinged(node, result),
    });
    this.#signal = options.signal;
    this.#signal?.addEventListener("abort", this.#aborted);
    if (this.#signal?.aborted) queueMicrotask(this.#aborted);
    else this.#link.dial();
  }

  get state(): CellSocketState {
    return this.#state;
  }

  /** 0 also while reconnecting. */
  get readyState(): 0 | 1 | 2 | 3 {
    return READY_STATES[this.#state];
  }

  /** Id of the node, while a connection is open. */
  get node(): string | undefined {
    return this.#link.connection?.node.id;
  }

  /** The subprotocol of the last connection, or an empty string. */
  get protocol(): string {
    return this.#protocol;
  }

  /** Bytes (UTF-8 for text) that `send` took and that have not left this process. */
  get bufferedAmount(): number {
    return this.#outbox.bufferedAmount;
  }

  /** Round trip of the last answered ping, milliseconds. */
  get rttMs(): number | undefined {
    return this.#rttMs;
  }

  /**
   * Sends now (`sent`), or, while there is no connection or a slow one, queues (`queued`). With `queue: false` it throws
   * instead of queueing.
   *
   * @throws MessageTooLargeError (`CELLKIT_CLIENT_WS_TOO_LARGE`) above `maxSendBytes`
   * @throws SendBufferFullError (`CELLKIT_CLIENT_WS_BUFFER`) when the queue is full, or not to be used
   * @throws DOMException `InvalidStateError` after `close()`, or when the socket failed
   */
  send(data: SendData, options: { queue?: boolean } = {}): "sent" | "queued" {
    if (this.readyState >= 2) throw closedError();
    return this.#outbox.send(data, options.queue ?? true);
  }

  /** Resolves when less than `lowWaterMarkBytes` waits to be sent: the moment to send more. Rejects when the socket ends. */
  ready(signal?: AbortSignal): Promise<void> {
    if (this.readyState >= 2) return Promise.reject(this.#error ?? closedError());
    return this.#outbox.ready(signal);
  }

  /** Resolves when the socket is open, at once if it is. Rejects when it ends before that, with the reason. */
  opened(signal?: AbortSignal): Promise<void> {
    if (this.#state === "open") return Promise.resolve();
    if (this.readyState >= 2) return Promise.reject(this.#error ?? closedError());
    return this.#opened.wait(signal);
  }

  /** Exchanges the connection for a new one now, or stops waiting and dials now. Nothing while a dial is under way. */
  reconnect(reason = "reconnect"): void {
    this.#link.reconnect(checkedReason(reason));
  }

  /** Stops reading, down to TCP. Keepalive judges nothing until `resume`. */
  pause(): void {
    this.#paused = true;
    this.#applyPause();
  }

  /** Reads again. */
  resume(): void {
    this.#paused = false;
    this.#applyPause();
  }

  /**
   * Sends what is queued (if a connection is open), closes, and waits up to `closeTimeoutMs` for the peer. Every call gives
   * the same promise, which never rejects once the arguments are accepted.
   *
   * @throws DOMException `InvalidAccessError` for a code other than 1000 and 3000 to 4999, `SyntaxError` for a reason above
   * 123 UTF-8 bytes, as a WebSocket does; here as rejections
   */
  async close(code = 1000, reason = ""): Promise<CellCloseEvent> {
    this.#close(checkedCloseCode(code), checkedReason(reason), undefined);
    return this.#over;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Messages from now on; the first iterator also gets what came before anybody listened, within the `receive` bounds. */
  [Symbol.asyncIterator](): AsyncIterator<string | ArrayBuffer> {
    return this.#readers.open();
  }

  /** The socket keeps the process alive (the default). */
  ref(): this {
    this.#link.ref();
    return this;
  }

  /** The socket alone does not keep the process alive: neither an open connection, nor a dial, nor the wait for one. */
  unref(): this {
    this.#link.unref();
    return this;
  }

  protected override listenerAdded(type: keyof CellSocketEvents): void {
    if (type !== "message") return;
    this.#heeded = true;
    this.#readers.listening();
  }

  readonly #aborted = (): void => this.#close(1000, "aborted", this.#signal?.reason);

  #close(code: number, reason: string, error: unknown): void {
    if (this.readyState >= 2) return;
    this.#state = "closing";
    this.#error = error;
    this.#outbox.flushAll();
    this.#link.close(code, reason, error);
  }

  #connected(connection: Connection, attempt: number): void {
    const { onOpen, handshakeTimeoutMs, maxSendBytes } = this.#options;
    this.#protocol = connection.protocol;
    this.#applyPause();
    const resumed = this.#everOpen;
    greet(connection, { attempt, resumed, onOpen, handshakeTimeoutMs, maxSendBytes }, (error) => {
      if (error === undefined) this.#open(connection, attempt, resumed);
      else this.#link.giveUp(connection, error);
    });
  }

  #open(connection: Connection, attempt: number, resumed: boolean): void {
    if (this.#link.connection !== connection || this.readyState >= 2) return;
    this.#state = "open";
    this.#everOpen = true;
    this.#outbox.open(connection);
    publish("open", { node: connection.node.id, attempt, resumed });
    this.#opened.resolveAll();
    this.dispatchEvent(new Event("open"));
  }

  #disconnected(node: string, { code, reason }: ConnectionClose): void {
    this.#outbox.disconnect();
    if (this.#state === "open") this.#state = "reconnecting";
    publish("close", { node, code, reason });
  }

  #waiting(loss: LinkLoss, attempt: number, delayMs: number): void {
    this.#state = this.#everOpen ? "reconnecting" : "connecting";
    publish("reconnect", { attempt, delayMs });
    this.dispatchEvent(new CellReconnectingEvent({ ...loss, attempt, delayMs }));
  }

  #migrating(node: string): void {
    this.#state = "migrating";
    this.#outbox.disconnect();
    publish("migrate", { node });
  }

  #ended(event: CellCloseEvent): void {
    this.#state = "closed";
    this.#error = event.error;
    this.#signal?.removeEventListener("abort", this.#aborted);
    this.#outbox.end(event.error ?? closedError());
    this.#opened.rejectAll(event.error ?? closedError());
    this.#readers.finish(event.error === undefined ? "clean" : { error: event.error });
    if (event.error !== undefined) this.dispatchEvent(new CellErrorEvent(event.error));
    this.dispatchEvent(event);
    this.#resolveOver(event);
  }

  #received(data: string | Buffer, sizeBytes: number): void {
    if (this.readyState >= 2) return;
    if (this.#readers.interested)
      this.#readers.push(typeof data === "string" ? data : toArrayBuffer(data), sizeBytes);
    if (this.#heeded)
      this.dispatchEvent(
        new CellMessageEvent(typeof data === "string" ? data : toBinary(data, this.binaryType)),
      );
  }

  #pinged(node: string, result: { rttMs: number } | { misconfigured: true }): void {
    if ("rttMs" in result) this.#rttMs = result.rttMs;
    else if (this.#warned) return;
    else this.#warned = true;
    publish("ping", { node, ...result });
  }

  #applyPause(): void {
    const connection = this.#link.connection;
    if (this.#paused || this.#readers.full) connection?.pause();
    else connection?.resume();
  }
}
