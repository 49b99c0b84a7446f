/**
 * The options of a {@link CellSocket}. Not there yet, and therefore not in these types: `affinity`,
 * `migrate: "make-before-break"`, `resume` (last event id, gap notice, dropping of duplicates) and `unconfirmed`. An application that must not miss events
 * asks for them in `onOpen`.
 */
import type { Headers, HeadersInit } from "undici";
import type { CellCloseEvent } from "./cell-socket-events.ts";
import type { SocketAction } from "./core/socket-action.ts";

/** What `send` takes. Text goes out as a text message, everything else as a binary one. */
export type SendData = string | ArrayBuffer | ArrayBufferView | Blob;

/** Where a socket goes: a path (with query) on the fleet's authority, or an absolute URL whose host is that authority. */
export type SocketTarget = string | (() => string | Promise<string>);

/** Options of {@link CellSocketOptions.keepalive}. */
export interface KeepaliveOptions {
  /**
   * Which pings are sent. `auto-response`: the text pair that the Worker registered with `registerAutoResponse`, which
   * the runtime answers without waking the cell. `protocol`: WebSocket pings. `both`: both in every cycle.
   * @default "auto-response"
   */
  mode?: "auto-response" | "protocol" | "both";
  /** The text of a ping; at most 2,048 UTF-8 bytes. @default "ping" */
  request?: string;
  /** The text that answers it; at most 2,048 UTF-8 bytes and not the request. @default "pong" */
  response?: string;
  /** A ping goes out when nothing arrived for this long, ±10 %. @default 20000 */
  intervalMs?: number;
  /** When nothing at all arrives for this long after a ping, the connection is cut and replaced. @default 5000 */
  timeoutMs?: number;
}

/** Options of {@link CellSocketOptions.reconnect}. */
export interface ReconnectOptions {
  /** Ceiling of the first backoff; doubles each time. Delays are uniform between 0 and the ceiling. @default 250 */
  baseMs?: number;
  /** Ceiling of every backoff. @default 15000 */
  maxMs?: number;
  /** A socket that lost a working connection dials again within this time, so that a crowd does not come at once. @default 1000 */
  spreadMs?: number;
  /** A connection that lasted this long resets the backoff and all counts below. @default 5000 */
  minUptimeMs?: number;
  /** Dials without a connection that lasted, then the socket gives up. @default Infinity */
  maxAttempts?: number;
  /** Time without a connection that lasted, then the socket gives up; 0 never does. @default 0 */
  giveUpAfterMs?: number;
}

/** Options of {@link CellSocketOptions.queue}: what may wait while there is no connection, or a slow one. */
export interface QueueOptions {
  /** @default 256 */
  maxMessages?: number;
  /** UTF-8 bytes for text. @default 1048576 */
  maxBytes?: number;
  /** A message that waited this long is discarded (channel `fleet:ws:discard`). @default 30000 */
  maxAgeMs?: number;
  /**
   * What happens when the queue is full: `throw` a {@link SendBufferFullError}, or drop the oldest or the newest message
   * and publish it on the channel `fleet:ws:discard`.
   * @default "throw"
   */
  overflow?: "throw" | "drop-oldest" | "drop-newest";
}

/** What `onOpen` gets. */
export interface OpenContext {
  /** Sends on the new connection, ahead of everything that is queued. */
  send(data: SendData): void;
  /** Dials since the last connection that lasted, this one included; 1 when the first worked. */
  readonly attempt: number;
  /** The node's id. */
  readonly node: string;
  /** True when the socket had been open before. */
  readonly resumed: boolean;
}

/** Options of a {@link CellSocket}. Everything is optional. */
export interface CellSocketOptions {
  /** Subprotocols to offer. */
  protocols?: string[];
  /** Headers of the upgrade request. A function is evaluated for every dial, so that a token can be fresh. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Time for one upgrade, and again for an asynchronous `onOpen`. @default 5000 */
  handshakeTimeoutMs?: number;
  /** False: no pings; a dead peer is then noticed only when TCP gives up. */
  keepalive?: false | KeepaliveOptions;
  /** False: one round over the nodes at the start, and a lost connection stays lost. */
  reconnect?: false | ReconnectOptions;
  /** Overrides what a close code leads to; undefined leaves it to the table. */
  classifyClose?: (event: CellCloseEvent) => SocketAction | undefined;
  /** Overrides what a refused upgrade leads to (drain refusals excepted); undefined leaves it to the table. `body` is at most 4 KiB. */
  classifyUpgrade?: (status: number, headers: Headers, body: string) => SocketAction | undefined;
  /** Reconnect after a close with code 1000 too, for proxies that misuse it. @default false */
  reconnectOnNormal?: boolean;
  /**
   * What happens when the node of an open socket starts to drain or turns unhealthy while another node is there.
   * `break-before-make`: the connection is closed with 1001 and another node is dialled; what is sent meanwhile is queued.
   * `false`: wait for the end. (`make-before-break` is not there yet.)
   * @default "break-before-make"
   */
  migrate?: "break-before-make" | false;
  queue?: QueueOptions;
  /** Above this many unsent bytes in the connection, `send` queues. @default 1048576 */
  highWaterMarkBytes?: number;
  /** `ready()` resolves below this. @default 262144 */
  lowWaterMarkBytes?: number;
  /** How much may wait for an iterator before reading stops, down to TCP. @default 256 messages, 4194304 bytes */
  receive?: { maxMessages?: number; maxBytes?: number };
  /** A larger inbound message closes the socket for good with 1009. @default 33554432 */
  maxPayloadBytes?: number;
  /** `send` throws for a larger message. @default 33554432 */
  maxSendBytes?: number;
  /** Offer compression. @default false */
  perMessageDeflate?: boolean;
  /** How long `close()` waits for the peer. @default 3000 */
  closeTimeoutMs?: number;
  /**
   * Called for every new connection, before queued messages go out: sign in, subscribe, ask for what was missed. While its
   * promise is pending the socket is not open. When it fails, the connection is closed and dialled again after backoff.
   */
  onOpen?: (context: OpenContext) => void | Promise<void>;
  /** Closes the socket; its reason is the error that waiting callers get. */
  signal?: AbortSignal;
}
