// A TCP client that keeps every byte and knows how its connection ended.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { until } from "../../../../tools/test-support/until.ts";

export class RawClient {
  readonly socket: Socket;
  text = "";
  ended = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
    });
    for (const event of ["end", "close", "error"]) {
      socket.on(event, () => {
        this.ended = true;
      });
    }
  }

  /** Waits for the end of the connection; answers all that came. */
  async all(): Promise<string> {
    await until("end of the connection", () => this.ended);
    return this.text;
  }

  async receive(part: string): Promise<string> {
    await until(JSON.stringify(part), () => this.text.includes(part));
    return this.text;
  }
}

/** Connects; cut when the test ends. */
export async function rawClient(port: number): Promise<RawClient> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const client = new RawClient(socket);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return client;
}
