// An undici client over a connection that stands already: a failure to connect is then told apart from all others, and
// nothing is sent twice.
import type { Socket } from "node:net";
import type { buildConnector } from "undici";
import { PeerNoAnswerError } from "./errors.ts";

/** For undici's `connect` option: gives the connection once; who asks again has lost it. @param where `host:port` */
export function oneConnection(socket: Socket, where: string): buildConnector.connector {
  let given = false;
  return (_options, callback) => {
    const usable = !given && !socket.destroyed;
    given = true;
    // Not at once: the client is not ready for its answer while it asks.
    queueMicrotask(() => {
      if (usable) callback(null, socket);
      else callback(new PeerNoAnswerError(where, "the connection was lost"), null);
    });
  };
}
