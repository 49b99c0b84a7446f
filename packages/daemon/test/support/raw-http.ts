import { connect } from "node:net";

/** Sends bytes on a new connection and gives everything that came back once the other side has closed, or cut it. */
export function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(port, "127.0.0.1", () => {
      // A side that answers before it has read everything resets the connection when it closes.
      socket
        .off("error", reject)
        .on("error", () => undefined)
        .write(bytes);
    });
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      answer += text;
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}
