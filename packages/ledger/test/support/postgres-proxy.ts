/** A TCP proxy before a PostgreSQL server that can cut or hold a connection between two messages of the protocol. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/**
 * What happens to a message.
 * - `pass`: nothing.
 * - `cut`: it and all after it are dropped, both connections reset.
 * - `hold`: it and all after it in its direction wait until `released`, with the connection open.
 * - `deliver-alone`: the client's connection is reset at once; the server gets the message when `released`, and its answer goes nowhere.
 */
export type Fault = { kind: "pass" | "cut" } | { kind: "hold" | "deliver-alone"; released: Promise<void> };

/** One message: who sent it, its type ("Q", "P", "C", "Z"; "startup" for the first), its bytes, which connection and how many before it. */
export interface Message {
  from: "client" | "server";
  type: string;
  text: string;
  connection: number;
}

export interface PostgresProxy {
  port: number;
  /** Every message that came, oldest first. */
  seen: Message[];
}

/** Starts a proxy; `choose` says what happens to each message. */
export async function startPostgresProxy(
  target: { port: number },
  choose: (message: Message) => Fault,
): Promise<PostgresProxy> {
  const seen: Message[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    const connection = connections++;
    const upstream = connect(target.port, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      // Each message goes in a packet of its own, and must not wait for the last one's acknowledgement.
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.once("close", () => sockets.delete(socket));
    }
    const cut = () => {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    };
    let alone = false;
    client.once("close", () => alone || upstream.destroy());
    upstream.once("close", () => client.destroy());
    const pipe = (from: Message["from"], source: Socket, sink: Socket) => {
      let first = from === "client";
      let waiting = Promise.resolve();
      onMessages(
        source,
        () => first,
        (bytes) => {
          const type = first ? "startup" : String.fromCharCode(bytes[0] ?? 0);
          first = false;
          const message = { from, type, text: bytes.toString("latin1"), connection };
          seen.push(message);
          const fault = choose(message);
          if (fault.kind === "hold" || fault.kind === "deliver-alone") {
            if (fault.kind === "deliver-alone") {
              alone = true;
              client.resetAndDestroy();
            }
            waiting = waiting.then(() => fault.released);
          }
          waiting = waiting.then(() => {
            if (fault.kind === "cut") cut();
            else if (!sink.destroyed) sink.write(bytes);
          });
        },
      );
    };
    pipe("client", client, upstream);
    pipe("server", upstream, client);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

/** Cuts a stream into messages: a type byte (which the startup message lacks) and a length that counts itself. */
function onMessages(source: Socket, isFirst: () => boolean, act: (bytes: Buffer) => void): void {
  let buffered = Buffer.alloc(0);
  source.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    for (;;) {
      const at = isFirst() ? 0 : 1;
      if (buffered.length < at + 4) return;
      const length = at + buffered.readInt32BE(at);
      if (buffered.length < length) return;
      const message = buffered.subarray(0, length);
      buffered = buffered.subarray(length);
      act(message);
    }
  });
}
