// Connections to dispatchers that are kept for the next call. Off unless asked for: the original opens one for each call.
import type { Socket } from "node:net";

/** How many wait for each dispatcher. */
const keptCount = 32;
/** How long one waits; less than the five seconds after which Node's servers end theirs. */
const keptMs = 4_000;

/** Connections that nobody uses at this moment. */
export class KeptConnections {
  readonly #kept = new Map<string, Socket[]>();

  /** The one that was used last; undefined where there is none. */
  take(origin: string): Socket | undefined {
    const list = this.#kept.get(origin);
    const socket = list?.pop();
    if (list?.length === 0) this.#kept.delete(origin);
    socket?.removeAllListeners();
    socket?.setTimeout(0);
    return socket;
  }

  /** Keeps one whose answer was read wholly. */
  give(origin: string, socket: Socket): void {
    const list = this.#kept.get(origin) ?? [];
    this.#kept.set(origin, list);
    if (list.length >= keptCount) {
      socket.destroy();
      return;
    }
    list.push(socket);
    const drop = () => {
      const at = list.indexOf(socket);
      if (at !== -1) list.splice(at, 1);
      if (list.length === 0 && this.#kept.get(origin) === list) this.#kept.delete(origin);
      socket.destroy();
    };
    // Nothing may come while nothing was asked; what comes belongs to no call.
    for (const event of ["data", "end", "error", "close"]) socket.on(event, drop);
    socket.setTimeout(keptMs, drop);
  }

  /** Ends all of them. */
  close(): void {
    for (const list of this.#kept.values()) for (const socket of list.splice(0)) socket.destroy();
  }
}
