// WebSocket clients on an engine's public socket.
import type { IncomingHttpHeaders } from "node:http";
import { WebSocket } from "ws";
import type { NodeEngine } from "../../src/index.ts";

/** An open socket and how it will end. */
export interface TestSocket {
  readonly socket: WebSocket;
  /** Headers of the answer to the upgrade. */
  readonly headers: IncomingHttpHeaders;
  readonly closed: Promise<{ code: number; reason: string }>;
  /** Sends a text and waits for the next message. */
  ask(text: string): Promise<string>;
}

/** Opens a socket; rejects with the status of an answer that is not 101. */
export async function openSocket(
  engine: NodeEngine,
  path: string,
  protocols: string[] = [],
): Promise<TestSocket> {
  const socket = new WebSocket(`ws+unix:${engine.publicSocket}:${path}`, protocols);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  const opened = new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  const headers = new Promise<IncomingHttpHeaders>((resolve) => {
    socket.once("upgrade", (response) => resolve(response.headers));
  });
  await opened;
  socket.on("error", () => undefined);
  return {
    socket,
    headers: await headers,
    closed,
    ask: (text) =>
      new Promise((resolve) => {
        socket.once("message", (data) => resolve(String(data)));
        socket.send(text);
      }),
  };
}
