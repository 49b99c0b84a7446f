// Answers of a node to requests of peers, outside of tunnels.

import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { peerHeader } from "./core/constants.ts";
import { routeErrorHeader, staleOwnerMarker } from "./core/tunnel-names.ts";
import { tunnelVersionText } from "./wire.ts";

/** An answer: bare text that is called JSON, as every node sends it. */
export interface PeerAnswer {
  readonly status: number;
  readonly message: string;
  /** @default false */
  readonly staleOwner?: boolean;
}

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  426: "Upgrade Required",
  503: "Service Unavailable",
};

function fields({ message, staleOwner = false }: PeerAnswer, nowMs: number): Record<string, string> {
  return {
    [peerHeader.version]: tunnelVersionText,
    ...(staleOwner ? { [routeErrorHeader]: staleOwnerMarker } : {}),
    // Tells a peer with another clock how far it is off.
    date: new Date(nowMs).toUTCString(),
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(message)),
    connection: "close",
  };
}

/** Refuses an upgrade, and ends the connection once the refusal is out. */
export function refuseUpgrade(socket: Duplex, answer: PeerAnswer, nowMs: number): void {
  const lines = Object.entries(fields(answer, nowMs)).map(([name, value]) => `${name}: ${value}`);
  const status = `HTTP/1.1 ${answer.status} ${reasons[answer.status] ?? "Refused"}`;
  socket.once("finish", () => socket.destroy());
  socket.end([status, ...lines, "", answer.message].join("\r\n"));
}

/** Answers a request. */
export function answerRequest(response: ServerResponse, answer: PeerAnswer, nowMs: number): void {
  response.writeHead(answer.status, fields(answer, nowMs)).end(answer.message);
}
