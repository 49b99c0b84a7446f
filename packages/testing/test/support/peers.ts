import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Collects what a socket gets, and how it ends. */
export class Listener {
  text = "";
  ended = false;
  /** `reset` after a RST, `closed` after an end in order. */
  closed: "reset" | "closed" | undefined;
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
    });
    socket.on("end", () => {
      this.ended = true;
    });
    socket.on("error", () => {
      this.closed = "reset";
    });
    socket.on("close", () => {
      this.closed ??= "closed";
    });
    onTestFinished(() => void socket.destroy());
  }
}

/** A server whose connections are collected. */
export async function tcpServer(): Promise<{ address: string; connections: Listener[] }> {
  const connections: Listener[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => connections.push(new Listener(socket)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, connections };
}

/** A connection to a proxy, half open when the other side ends. */
export async function dial({ host, port }: { host: string; port: number }): Promise<Listener> {
  const socket = connect({ host, port, allowHalfOpen: true });
  const listener = new Listener(socket);
  await once(socket, "connect");
  return listener;
}
