import { describe, expect, it } from "vitest";
import { CallWatch } from "../src/call-watch.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const get = "GET http://cell/ HTTP/1.1\r\nhost: cell\r\nx-cells-scope: Room:1\r\n\r\n";
const post =
  "POST http://cell/ HTTP/1.1\r\nhost: cell\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
const answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

describe("a tunnel", () => {
  it("is not busy before its first call", () => {
    expect(new CallWatch().busy).toBe(false);
  });

  it.each([
    ["a length", get, answer],
    ["chunks", post, chunked],
    ["no body", get, "HTTP/1.1 204 No Content\r\n\r\n"],
    ["an interim answer", post, `HTTP/1.1 100 Continue\r\n\r\n${answer}`],
    ["an answer to HEAD", get.replace("GET", "HEAD"), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"],
  ])("is busy from the first byte of a call to the last of its answer: %s", (_, request, reply) => {
    const watch = new CallWatch();
    for (let round = 0; round < 2; round += 1) {
      for (const byte of bytes(request)) {
        watch.sent(Uint8Array.of(byte));
        expect(watch.busy).toBe(true);
      }
      const all = bytes(reply);
      for (const [index, byte] of all.entries()) {
        watch.answered(Uint8Array.of(byte));
        expect(watch.busy).toBe(index < all.length - 1);
      }
    }
  });

  it("is busy while the body of a call that was answered early goes on", () => {
    const watch = new CallWatch();
    watch.sent(bytes("POST http://cell/ HTTP/1.1\r\nhost: cell\r\ncontent-length: 2\r\n\r\nh"));
    watch.answered(bytes(answer));
    expect(watch.busy).toBe(true);
    watch.sent(bytes("i"));
    expect(watch.busy).toBe(false);
  });

  it("with an open socket is not busy, whatever its bytes are", () => {
    const watch = new CallWatch();
    watch.sent(
      bytes("GET http://cell/ HTTP/1.1\r\nhost: cell\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
    );
    expect(watch.busy).toBe(true);
    watch.answered(
      bytes("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"),
    );
    watch.answered(bytes("GET / HTTP"));
    watch.sent(bytes("\r\n\r\n"));
    expect(watch.busy).toBe(false);
  });

  it.each([
    ["bytes that are no call", (watch: CallWatch) => watch.sent(bytes("\0\0\r\n\r\n"))],
    ["an answer to nothing", (watch: CallWatch) => watch.answered(bytes("nothing\r\n\r\n"))],
    ["a second call before the answer", (watch: CallWatch) => watch.sent(bytes(`${get}${get}`))],
  ])("counts as busy after %s", (_, happen) => {
    const watch = new CallWatch();
    happen(watch);
    expect(watch.busy).toBe(true);
    watch.answered(bytes(answer));
    expect(watch.busy).toBe(true);
  });
});
