// What a WebSocket handshake through a tunnel comes to.

import type { Duplex } from "node:stream";
import { TunnelLostError } from "./errors.ts";
import { type HandshakeAnswer, webSocketAccept } from "./handshake.ts";
import { answerHeaders, checkVersion } from "./inner-request.ts";
import { PeerSocket } from "./peer-socket.ts";

/** A WebSocket that was accepted. */
export interface PeerConnection {
  readonly kind: "socket";
  /** Of the 101, `sec-websocket-accept` for the caller's key among them; without what a caller sets for its own client. */
  readonly headers: Headers;
  /**
   * The WebSocket's bytes, frames and all, to be spliced to a client. If the owner is lost between two frames and no
   * close frame passed, the last bytes are one: 1012 `owner unavailable`.
   */
  readonly socket: Duplex;
}

/** A handshake that was answered with something else. */
export interface PeerRejection {
  readonly kind: "response";
  readonly response: Response;
}

/**
 * Judges a 101 and takes its connection over.
 * @param key the `Sec-WebSocket-Key` that was sent
 * @throws PeerVersionError (CELLKIT_PEER_VERSION), TunnelLostError (CELLKIT_PEER_TUNNEL_LOST) when the 101 is for another
 *   key; the connection is then destroyed
 */
export function takeSocket(
  { headers, socket: tunnel }: Extract<HandshakeAnswer, { kind: "socket" }>,
  key: string,
): PeerConnection {
  tunnel.on("error", () => undefined);
  try {
    checkVersion(headers);
    if (headers["sec-websocket-accept"] !== webSocketAccept(key)) {
      throw new TunnelLostError("its answer to the WebSocket handshake is for another one");
    }
  } catch (error) {
    tunnel.destroy();
    throw error;
  }
  return { kind: "socket", headers: answerHeaders(headers), socket: new PeerSocket(tunnel) };
}
