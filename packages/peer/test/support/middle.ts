// Somebody between two ends: a TCP proxy that keeps what passes and may change it.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Takes a chunk of one direction and answers what goes on: pieces, or undefined to cut the connection. */
export type Tamper = (chunk: Buffer, direction: "out" | "back", offset: number) => Buffer | undefined;

export interface Middle {
  address: { host: string; port: number };
  /** All that passed, both ways, as it came. */
  captured: Buffer[];
  tamper: Tamper;
}

/** Starts one before an address; gone when the test ends. */
export async function startMiddle(target: { host: string; port: number }): Promise<Middle> {
  const middle: Middle = { address: { host: "127.0.0.1", port: 0 }, captured: [], tamper: (chunk) => chunk };
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ ...target, allowHalfOpen: true, noDelay: true });
    const cut = () => {
      near.destroy();
      far.destroy();
    };
    const pass = (from: Socket, to: Socket, direction: "out" | "back") => {
      let offset = 0;
      open.add(from);
      from.on("data", (chunk: Buffer) => {
        middle.captured.push(chunk);
        const changed = middle.tamper(chunk, direction, offset);
        offset += chunk.length;
        if (changed === undefined) cut();
        else if (changed.length > 0) to.write(changed);
      });
      from.on("end", () => to.end());
      from.on("error", cut);
      from.on("close", () => {
        open.delete(from);
        if (from.errored !== null || !from.readableEnded) cut();
      });
    };
    pass(near, far, "out");
    pass(far, near, "back");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  middle.address.port = typeof address === "object" && address !== null ? address.port : 0;
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return middle;
}
