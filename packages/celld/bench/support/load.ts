// The same bytes over kept-alive connections, one request at a time on each; as little of our own work as possible.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const request = Buffer.from(
  "GET /hello HTTP/1.1\r\nHost: hello.example\r\nUser-Agent: cellkit-bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n",
);

/** How many connections there are at a time. */
export const connectionCount = 16;

/** Sends `requestCount` requests over connections of its own and waits for all answers, which must be of equal length. */
export async function runLoad(port: number, requestCount: number): Promise<void> {
  const sockets = Array.from({ length: connectionCount }, () =>
    connect({ port, host: "127.0.0.1", noDelay: true }),
  );
  const left = { unsent: requestCount };
  try {
    await Promise.all(sockets.map((socket) => work(socket, left)));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

async function work(socket: Socket, left: { unsent: number }): Promise<void> {
  await once(socket, "connect");
  await new Promise<void>((resolve, reject) => {
    let answerBytes: number | undefined;
    let received = 0;
    const send = () => {
      if (left.unsent === 0) return resolve();
      left.unsent -= 1;
      socket.write(request);
    };
    socket.on("data", (chunk: Buffer) => {
      answerBytes ??= lengthOf(chunk);
      received += chunk.length;
      if (received < answerBytes) return;
      received -= answerBytes;
      send();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new TypeError("the server closed a connection")));
    send();
  });
}

/** The length of a whole answer, from the chunk with its head. */
function lengthOf(chunk: Buffer): number {
  const text = chunk.toString("latin1");
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1];
  if (length === undefined || !text.startsWith("HTTP/1.1 200 ")) {
    throw new TypeError(`an answer that the load does not understand: ${text}`);
  }
  return text.indexOf("\r\n\r\n") + 4 + Number(length);
}
