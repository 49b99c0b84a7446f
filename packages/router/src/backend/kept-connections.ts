// Connections to dispatchers that are kept for the next call. Off unless asked for: the original opens one for each call.
import type { Socket } from "node:net";

/** How many wait for each dispatcher. */
const keptCount = 32;
/** How long one waits; less than the five seconds after which Node's servers end theirs. */
const keptMs = 4_000;

/** Connections that nobody uses at this moment. */
export class KeptConnections {
  readonly #kept = new Map<string, Socket[]>();
  /** Given back, and not to be taken yet. */
  readonly #quarantined = new Set<Socket>();

  /** The one that was used last; undefined where there is none. */
  take(origin: string): Socket | undefined {
    const list = this.#kept.get(origin);
    const socket = list?.pop();
    if (list?.length === 0) this.#kept.delete(origin);
    socket?.removeAllListeners();
    socket?.setTimeout(0);
    return socket;
  }

  /**
   * Keeps one whose answer was read wholly. It is there to be taken once the event loop has looked for further bytes in vain: what a
   * dispatcher sends behind its answer must not become the next call's.
   */
  give(origin: string, socket: Socket): void {
    const drop = () => this.#drop(origin, socket);
    // Nothing may come while nothing was asked; what comes belongs to no call.
    for (const event of ["data", "end", "error", "close"]) socket.on(event, drop);
    socket.setTimeout(keptMs, drop);
    this.#quarantined.add(socket);
    // The first comes before the loop looks for bytes anew, the second one behind that.
    setImmediate(() => setImmediate(() => this.#admit(origin, socket)));
  }

  /** Ends all of them. */
  close(): void {
    for (const socket of this.#quarantined) socket.destroy();
    this.#quarantined.clear();
    for (const list of this.#kept.values()) for (const socket of list.splice(0)) socket.destroy();
  }

  #admit(origin: string, socket: Socket): void {
    if (!this.#quarantined.delete(socket)) return;
    const list = this.#kept.get(origin) ?? [];
    this.#kept.set(origin, list);
    if (list.length < keptCount) list.push(socket);
    else socket.destroy();
  }

  #drop(origin: string, socket: Socket): void {
    this.#quarantined.delete(socket);
    const list = this.#kept.get(origin) ?? [];
    const at = list.indexOf(socket);
    if (at !== -1) list.splice(at, 1);
    if (list.length === 0) this.#kept.delete(origin);
    socket.destroy();
  }
}
