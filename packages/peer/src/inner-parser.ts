// What the owner's end of a tunnel needs of Node's HTTP parser beyond a server's own ways.

import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { peerHeader } from "./core/constants.ts";
import { tunnelVersionText } from "./wire.ts";

/** What came is no HTTP, or its head is too large: nothing ran, and the refusal is a node's. */
export function refuseBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
  const { _httpMessage: response } = socket as { _httpMessage?: ServerResponse | null };
  if (socket.writable && response?.headersSent !== true) {
    const status =
      error.code === "HPE_HEADER_OVERFLOW" ? "431 Request Header Fields Too Large" : "400 Bad Request";
    const version = `${peerHeader.version}: ${tunnelVersionText}`;
    socket.write(`HTTP/1.1 ${status}\r\n${version}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    socket.once("finish", () => socket.destroy());
    socket.end();
  } else socket.destroy();
}

/**
 * Node's HTTP parser reads a socket without passing each chunk through JavaScript, unless a flag says that it does so
 * already. An upgrade ends that reading but leaves the flag, which would make every call in a tunnel cost some
 * microseconds more. Where Node has no such flag, nothing happens.
 */
export function letParserRead(tunnel: Duplex): void {
  const { _handle: handle } = tunnel as { _handle?: { _consumed?: boolean } | null };
  if (handle?._consumed === true) handle._consumed = false;
}
