// A caller's connection that a test writes to as it likes.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Connects to a router. */
export async function openSocket(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, ...options });
  await once(socket, "connect");
  return socket;
}

/** All that comes until the router's end, or the text of an error. */
export function received(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.on("end", () => resolve(text));
    socket.on("error", (error) => resolve(error.message));
  });
}
