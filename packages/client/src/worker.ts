/**
 * The Worker's side of a {@link https://developers.cloudflare.com/durable-objects/best-practices/websockets/ hibernating
 * WebSocket}'s keepalive. Runs inside workerd: no Node API, no dependency. All types are structural, so it fits any version
 * of the Workers types and needs none.
 */

/** The texts of a ping and its answer, as the client's `keepalive` option has them. */
export interface KeepalivePair {
  /** @default "ping" */
  request?: string;
  /** @default "pong" */
  response?: string;
}

/** What {@link registerAutoResponse} needs of a `DurableObjectState`. */
export interface AutoResponseState {
  getWebSocketAutoResponse(): { readonly request: string; readonly response: string } | null;
  setWebSocketAutoResponse(pair: { readonly request: string; readonly response: string }): void;
}

/** What {@link staleSockets} needs of a `DurableObjectState`. */
export interface SocketsState<Socket> {
  getWebSockets(): Socket[];
  getWebSocketAutoResponseTimestamp(socket: Socket): Date | null;
}

/** The runtime's own class; there is no other way to make a pair. */
interface WorkerGlobals {
  WebSocketRequestResponsePair: new (
    request: string,
    response: string,
  ) => { readonly request: string; readonly response: string };
}

/** The runtime refuses longer texts; it counts UTF-8 bytes. */
const MAX_PAIR_BYTES = 2_048;

/**
 * Lets the runtime answer pings in the cell's place, so that an idle cell sleeps on. Call it in the constructor of the
 * Durable Object: the pair lives with the cell and is gone after a reset. It concerns sockets accepted with
 * `state.acceptWebSocket`. Registering the same pair again does nothing.
 *
 * @throws RangeError when either text has more than 2,048 UTF-8 bytes
 * @throws TypeError when both texts are equal
 */
export function registerAutoResponse(state: AutoResponseState, pair?: KeepalivePair): void {
  const { request, response } = checkedPair(pair);
  const current = state.getWebSocketAutoResponse();
  if (current !== null && current.request === request && current.response === response) return;
  const { WebSocketRequestResponsePair } = globalThis as unknown as WorkerGlobals;
  state.setWebSocketAutoResponse(new WebSocketRequestResponsePair(request, response));
}

/** True for the text of a ping: for sockets that cannot hibernate, where no auto-response works. */
export function isKeepalive(message: string | ArrayBuffer, pair?: KeepalivePair): boolean {
  return message === (pair?.request ?? "ping");
}

/**
 * Answers a ping on a socket that cannot hibernate (one accepted with `socket.accept()`). Call it first in the message
 * listener, and return when it says true.
 *
 * @returns true when the message was a ping and is answered, false when it is the application's
 */
export function answerKeepalive(
  socket: { send(message: string): void },
  message: string | ArrayBuffer,
  pair?: KeepalivePair,
): boolean {
  if (!isKeepalive(message, pair)) return false;
  socket.send(pair?.response ?? "pong");
  return true;
}

/** Options of {@link staleSockets}. */
export interface StaleOptions<Socket> {
  /** A socket whose last ping was answered longer ago than this is stale. Take more than two ping intervals. */
  olderThanMs: number;
  /** The current time, milliseconds since the Unix epoch. @default Date.now() */
  now?: number;
  /**
   * When a socket was accepted, milliseconds since the Unix epoch, if the application knows (from its attachment, say). The
   * runtime does not tell. Asked for sockets that have not pinged yet.
   */
  acceptedAtMs?: (socket: Socket) => number | undefined;
}

/**
 * The hibernatable sockets whose clients stopped pinging, for an alarm to close. A socket that has not pinged yet has no
 * time to judge it by: it counts as stale only when `acceptedAtMs` says that it was accepted longer ago than `olderThanMs`.
 */
export function staleSockets<Socket>(state: SocketsState<Socket>, options: StaleOptions<Socket>): Socket[] {
  const { acceptedAtMs, now = Date.now(), olderThanMs } = options;
  return state.getWebSockets().filter((socket) => {
    const seenMs = state.getWebSocketAutoResponseTimestamp(socket)?.getTime() ?? acceptedAtMs?.(socket);
    return seenMs !== undefined && now - seenMs > olderThanMs;
  });
}

function checkedPair(pair: KeepalivePair = {}): Required<KeepalivePair> {
  const { request = "ping", response = "pong" } = pair;
  for (const [name, text] of [
    ["request", request],
    ["response", response],
  ] as const) {
    const sizeBytes = new TextEncoder().encode(text).length;
    if (sizeBytes > MAX_PAIR_BYTES) {
      throw new RangeError(
        `keepalive ${name} has ${sizeBytes} UTF-8 bytes; the runtime accepts ${MAX_PAIR_BYTES}`,
      );
    }
  }
  if (request === response)
    throw new TypeError(`keepalive request and response are both "${request}"; they must differ`);
  return { request, response };
}
