// A request head as the upstream gets it.

import type { Socket } from "node:net";
import type { RequestHead } from "./core/request-tracker.ts";
import { headerJson, insertField, withoutLines } from "./core/rewrite.ts";
import type { ClientHeader } from "./options.ts";

/** The line that is put into each head of a client's connection. */
export function clientLine(header: ClientHeader, client: Socket): Buffer {
  const value = header.value({ address: client.remoteAddress ?? "", port: client.remotePort ?? 0 });
  return Buffer.from(`${header.name}: ${headerJson(value)}\r\n`, "latin1");
}

/** The head without its stripped lines, the line put in. Without either it is the head itself, not a copy. */
export function forwardedHead(head: RequestHead, line: Buffer | undefined): Uint8Array {
  const bytes = head.stripped === undefined ? head.bytes : withoutLines(head.bytes, head.stripped);
  if (line === undefined) return bytes;
  return insertField(bytes, head.fieldsStart, line, Buffer.allocUnsafe(bytes.length + line.length));
}
