// The owner's end of tunnels of kind `do` and `rpc` when another server on this machine answers what comes inside.
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { carry } from "./carry.ts";
import { peerHeader } from "./core/constants.ts";
import { tunnelVersionText } from "./wire.ts";

const unavailableText = "route failed: NodeUnavailable";
/** Nothing has run, and the caller is told so in both ways that there are. */
const unavailable = [
  "HTTP/1.1 503 Service Unavailable",
  `${peerHeader.version}: ${tunnelVersionText}`,
  "cellkit-outcome: not-run",
  "retry-after: 1",
  "content-type: application/json",
  `content-length: ${unavailableText.length}`,
  "connection: close",
  "",
  unavailableText,
].join("\r\n");
/** How long a refused call may take to hear of it and go. */
const refusalMs = 5_000;

/** Who sees the bytes on their way. */
export interface CallListeners {
  /** Of the dialling node. */
  sent(chunk: Buffer): void;
  /** Of the server. */
  answered(chunk: Buffer): void;
}

/**
 * Carries the bytes of a tunnel to the server at a unix socket, and its answers back. When no server is there, the first
 * call is answered 503, with the protocol's version. The tunnel's `close` tells the end.
 * @param socketPath undefined when there is no server
 */
export function carryCalls(tunnel: Duplex, socketPath: string | undefined, listeners?: CallListeners): void {
  if (socketPath === undefined) {
    refuse(tunnel);
    return;
  }
  const server = connect({ path: socketPath, allowHalfOpen: true });
  const giveUp = () => server.destroy();
  const refused = () => {
    settle();
    refuse(tunnel);
  };
  const settle = () => {
    tunnel.off("close", giveUp);
    tunnel.off("error", giveUp);
    server.off("error", refused);
  };
  tunnel.on("close", giveUp).on("error", giveUp);
  server.on("error", refused);
  server.once("connect", () => {
    if (listeners !== undefined) {
      tunnel.on("data", (chunk: Buffer) => listeners.sent(chunk));
      server.on("data", (chunk: Buffer) => listeners.answered(chunk));
    }
    carry(tunnel, server);
    settle();
  });
}

/** Answers once a request has begun: an answer to nothing would be no answer. */
function refuse(tunnel: Duplex): void {
  const cutLate = setTimeout(() => tunnel.destroy(), refusalMs).unref();
  tunnel.on("error", () => undefined);
  tunnel.once("close", () => clearTimeout(cutLate));
  tunnel.once("data", () => {
    tunnel.end(unavailable);
    tunnel.resume();
  });
  tunnel.once("end", () => tunnel.end());
}
