import type { IncomingMessage, ServerResponse } from "node:http";
import type { WebSocket } from "ws";
import { TestingOptionError } from "../errors.ts";

/** Options of {@link fleet}. */
export interface TestFleetOptions {
  /** @default 3 */
  readonly nodeCount?: number;
  /** What the Worker of each node would answer. @default 200 and `{"node":name,"method":…,"path":…}` */
  readonly app?: (request: IncomingMessage, response: ServerResponse, node: string) => void;
  /** What a cell would do with each WebSocket. @default every message goes back */
  readonly socket?: (socket: WebSocket, request: IncomingMessage, node: string) => void;
}

export interface ResolvedFleetOptions {
  readonly nodeCount: number;
  readonly app: (request: IncomingMessage, response: ServerResponse, node: string) => void;
  readonly socket: (socket: WebSocket, request: IncomingMessage, node: string) => void;
}

/** @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`) */
export function resolveFleetOptions(options: TestFleetOptions): ResolvedFleetOptions {
  const { nodeCount = 3, app = tell, socket = echo } = options;
  if (!Number.isInteger(nodeCount) || nodeCount < 1 || nodeCount > 100) {
    throw new TestingOptionError("nodeCount", `is ${nodeCount}; give 1 to 100`);
  }
  return { nodeCount, app, socket };
}

function tell({ method, url }: IncomingMessage, response: ServerResponse, node: string): void {
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(JSON.stringify({ node, method, path: url }));
}

function echo(socket: WebSocket): void {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
}
