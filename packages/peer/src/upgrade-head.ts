// The head of the answer to a handshake inside a tunnel. The handler writes it itself, so that any WebSocket library
// works; on its way out it gets the protocol's version, and loses what only nodes may say.

import type { Duplex } from "node:stream";
import { isReservedHeader } from "./call-headers.ts";
import { peerHeader } from "./core/constants.ts";
import { tunnelVersionText } from "./wire.ts";

const headEnd = "\r\n\r\n";
/** A head that is longer than this without an end is not one: the connection is cut. */
const maxHeadBytes = 64 * 1024;

type Write = (chunk: string | Uint8Array, ...rest: unknown[]) => boolean;

/**
 * Edits the head of the answer as it is written to the socket, then gets out of the way: the bytes behind it cost nothing.
 * Interim heads (1xx other than 101) before it are left out.
 * It covers `write` and `end`, which is how every server writes a head.
 */
export function stampHead(socket: Duplex): void {
  const patched = socket as unknown as { write: Write; end: (...all: unknown[]) => Duplex };
  const { write, end } = patched;
  let held: Buffer[] = [];
  let heldBytes = 0;

  const restore = () => {
    patched.write = write;
    patched.end = end;
  };
  /** The bytes that may go on, or undefined while the head is incomplete. */
  const take = (chunk: string | Uint8Array, encoding: unknown): Buffer | undefined => {
    const named = typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8";
    held.push(typeof chunk === "string" ? Buffer.from(chunk, named) : Buffer.from(chunk));
    heldBytes += chunk.length;
    const all = Buffer.concat(held);
    const at = all.indexOf(headEnd);
    if (at < 0) {
      held = [all];
      if (heldBytes > maxHeadBytes) socket.destroy();
      return undefined;
    }
    const head = all.toString("latin1", 0, at);
    const behind = all.subarray(at + headEnd.length);
    if (!isHead(head)) {
      socket.destroy();
      return undefined;
    }
    if (isInterim(head)) {
      held = [];
      heldBytes = 0;
      return take(behind, undefined);
    }
    restore();
    return Buffer.concat([stamped(head), behind]);
  };
  patched.write = (chunk, ...rest) => {
    const [encoding] = rest;
    const done = rest.find((value) => typeof value === "function") as (() => void) | undefined;
    const bytes = take(chunk, encoding);
    if (bytes !== undefined) return write.call(socket, bytes, done);
    if (done !== undefined) process.nextTick(done);
    return true;
  };
  patched.end = (...all) => {
    const [chunk, encoding] = all;
    const done = all.find((value) => typeof value === "function");
    if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) {
      restore();
      return end.call(socket, done);
    }
    const bytes = take(chunk, encoding);
    restore();
    return bytes === undefined ? end.call(socket, Buffer.concat(held), done) : end.call(socket, bytes, done);
  };
}

/** Whether another head follows that is the answer; such a one is left out, since callers pass over it. */
function isInterim(head: string): boolean {
  return /^HTTP\/1\.[01] 1/.test(head) && !isAccepted(head);
}

function isAccepted(head: string): boolean {
  return /^HTTP\/1\.1 101(?: |\r|$)/.test(head);
}

/** Whether a parser will see the same status in it as we do. */
function isHead(head: string): boolean {
  return /^HTTP\/1\.[01] [1-5]\d\d(?: |\r|$)/.test(head);
}

function stamped(head: string): Buffer {
  const [statusLine = "", ...fields] = head.split("\r\n");
  const kept = fields.filter((field) => !isReservedHeader(field));
  if (!isAccepted(head)) {
    // Nothing reads further requests from this connection, whatever the handler says.
    const own = kept.filter((field) => !/^(?:connection|keep-alive)\s*:/i.test(field));
    kept.splice(0, kept.length, ...own, "connection: close");
  }
  return Buffer.from(
    [statusLine, ...kept, `${peerHeader.version}: ${tunnelVersionText}`, "", ""].join("\r\n"),
    "latin1",
  );
}
