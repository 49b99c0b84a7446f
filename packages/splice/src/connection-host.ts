// What a connection needs of its server, and tells it.

import type { CloseReason, ResolvedOptions } from "./options.ts";
import type { ReadBuffer } from "./read-buffer.ts";

/** What happened since the server was made. */
export interface SpliceTotals {
  /** Connections accepted. */
  connections: number;
  /** Requests forwarded to the upstream. */
  forwarded: number;
  /** Requests that `local` answered. */
  local: number;
  /** Requests refused because of the drain. */
  refused: number;
  /** Requests that cannot be framed with certainty (400). */
  malformed: number;
  /** Heads that did not come in time (408). */
  timedOut: number;
  /** Requests for which no upstream could be had (503). */
  unavailable: number;
  /** Requests whose upstream was lost before the answer's head (502) or within the answer (cut). */
  lost: number;
  /** Connections that were upgraded. */
  upgraded: number;
}

/** What all connections of a server share. */
export interface ConnectionHost {
  readonly options: ResolvedOptions;
  readonly totals: SpliceTotals;
  readonly readBuffer: ReadBuffer;
  readonly draining: boolean;
  /** Set once `closeSockets` was called: what an upgrade that comes later is closed with. */
  readonly socketClose: CloseReason | undefined;
  upstream(): string | undefined;
  /** A monotonic clock. */
  readonly nowMs: () => number;
  /** A request began (1) or ended (-1) to count as in flight. */
  countInFlight(step: 1 | -1): void;
  countSocket(step: 1 | -1): void;
  /** The connection is gone. */
  closed(connection: HostedConnection): void;
}

/** What the server may ask of a connection. */
export interface HostedConnection {
  /** The drain begins: a head that is half here may still be served. */
  drain(): void;
  /** Closes it with a close frame, if it is upgraded. */
  closeSocket(reason: CloseReason): void;
  /** Does what is due. @param nowMs the host's clock */
  expire(nowMs: number): void;
  /** The server ends: what is idle gets a FIN, what is not is cut. */
  stop(): void;
}
