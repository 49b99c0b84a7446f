/** What a `CellSocket` needs to know of a fleet, and tells it. Types only: the fleet implements them, tests fake them. */
import type { ResponseHeaders } from "./drain-marker.ts";

/** A node as a socket sees it. */
export interface SocketNode {
  readonly id: string;
  /** Where to dial; only its origin counts. */
  readonly url: URL;
  /** True while the node should be left: it drains, or its health is bad. */
  readonly leaving: boolean;
  /** The node said that it drains. `retryAfterMs`: 0 when it did not say for how long. */
  drained(retryAfterMs: number): void;
  /** The node could not be reached. */
  unreachable(): void;
  /** The node answered. */
  answered(): void;
  /** Something about the node is odd: look at its health soon. */
  probe(): void;
  /**
   * A dial to the node is under way, until the returned function is called. A node on probation gets one at a time.
   */
  dialling(): () => void;
  /** A connection is open: the node's health is watched until the returned function is called, and `changed` told of it. */
  watch(changed: () => void): () => void;
}

/** A fleet, seen from a socket. */
export interface SocketNodes {
  /** The logical origin: what the Host header says. */
  readonly authority: URL;
  /** TLS options for nodes behind https, as `node:tls` takes them. */
  readonly tls: object;
  /** Milliseconds of a clock that does not go back. */
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** True once the fleet is closed: nothing is dialled any more. */
  readonly closed: boolean;
  /** Resolves when a first set of endpoints is known, or the fleet is closed. */
  ready(): Promise<void>;
  /** A node to dial outside `excluded`, or undefined when there is none now. */
  pick(excluded: ReadonlySet<string>): SocketNode | undefined;
  /** True when a node that takes traffic exists beside `id`. */
  hasOther(id: string): boolean;
  /** True when the answer to an upgrade carries the complete drain marker. */
  isDrainRefusal(status: number, headers: ResponseHeaders, body: string): boolean;
}
