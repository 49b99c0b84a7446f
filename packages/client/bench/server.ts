// The server of the client benchmarks, in a process of its own so that only the client's CPU time is measured.
// Prints its port. Answers from a byte string: it must not be what limits the client.
import { createServer } from "node:net";

const answer = Buffer.from("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello");
const server = createServer((socket) => {
  socket.setNoDelay(true);
  // Requests are small GETs and never pipelined, so one chunk is one request.
  socket.on("data", () => socket.write(answer));
  socket.on("error", () => undefined);
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${typeof address === "object" && address !== null ? address.port : 0}\n`);
});
process.on("disconnect", () => process.exit(0));
