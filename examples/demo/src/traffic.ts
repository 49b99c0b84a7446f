// The application in the demo: a reader and a writer for each room, and sockets that stay open. Everything goes
// through @cellkit/client; every call is counted as the application saw it.

import { randomUUID } from "node:crypto";
import { AmbiguousRequestError, attemptsOf, CellSocket, type Fleet } from "@cellkit/client";
import type { Tally } from "./tally.ts";

/** How much traffic one room gets. */
export interface TrafficOptions {
  /** Pause between two calls of one loop. */
  paceMs: number;
  /** One write in this many has a 200 kB body; the others are small. */
  largeEvery: number;
}

const large = new Uint8Array(200_000).fill(0x78);
const small = new TextEncoder().encode("a short message");

/** Calls rooms until it is stopped. */
export class Traffic {
  readonly rooms: string[] = [];
  readonly #fleet: Fleet;
  readonly #tally: Tally;
  readonly #options: TrafficOptions;
  readonly #loops: Promise<void>[] = [];
  readonly #sockets: CellSocket[] = [];
  readonly #stop = new AbortController();

  constructor(fleet: Fleet, tally: Tally, options: TrafficOptions) {
    this.#fleet = fleet;
    this.#tally = tally;
    this.#options = options;
  }

  /** Sockets that are open now. */
  get openSockets(): number {
    return this.#sockets.filter(({ readyState }) => readyState === 1).length;
  }

  /** Waits until the client sends requests to every node again; a node that was away is asked for its health first. */
  async allNodesAdmitted(boundMs = 20_000): Promise<void> {
    const deadlineMs = performance.now() + boundMs;
    while (this.#fleet.nodes.some(({ state }) => state !== "admitted") && performance.now() < deadlineMs) {
      await this.#pause();
    }
  }

  /** Begins to call new rooms, and holds a socket to each. */
  addRooms(names: readonly string[]): void {
    for (const room of names) {
      this.rooms.push(room);
      this.#loops.push(this.#readLoop(room), this.#writeLoop(room));
      this.#holdSocket(room);
    }
  }

  /** Ends all loops after their call in flight, then closes the sockets. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
    await Promise.all(this.#sockets.map((socket) => socket.close(1000, "the demo is over")));
  }

  /** Reads from every room which writes stand in it, and how many times each. */
  async collectEffects(): Promise<void> {
    for (const room of this.rooms) {
      const answer = await this.#fleet.request({ origin: origin, path: `/rooms/${room}/ids`, method: "GET" });
      const { ids } = (await answer.body.json()) as { ids: Record<string, number> };
      this.#tally.effects(room, new Map(Object.entries(ids)));
    }
  }

  async #readLoop(room: string): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#call(room, "read", { method: "GET", path: `/rooms/${room}/count` });
      await this.#pause();
    }
  }

  async #writeLoop(room: string): Promise<void> {
    for (let n = 1; !this.#stop.signal.aborted; n += 1) {
      const writeId = randomUUID();
      const body = n % this.#options.largeEvery === 0 ? large : small;
      await this.#call(room, "write", {
        method: "POST",
        path: `/rooms/${room}/messages?id=${writeId}`,
        body,
        writeId,
      });
      await this.#pause();
    }
  }

  async #call(
    cell: string,
    kind: "read" | "write",
    call: { method: "GET" | "POST"; path: string; body?: Uint8Array; writeId?: string },
  ): Promise<void> {
    const startMs = performance.now();
    const { writeId } = call;
    const record = (outcome: "ok" | "ambiguous" | "failed", retries: number, error?: string) =>
      this.#tally.call({
        cell,
        kind,
        startMs,
        endMs: performance.now(),
        outcome,
        retries,
        ...(writeId === undefined ? {} : { writeId }),
        ...(error === undefined ? {} : { error }),
      });
    try {
      const answer = await this.#fleet.request({
        origin,
        path: call.path,
        method: call.method,
        ...(call.body === undefined ? {} : { body: call.body }),
      });
      const text = await answer.body.text();
      const attempts = attemptsOf(answer);
      const retries = attempts.length - 1;
      const problem = `${answer.statusCode} ${text.slice(0, 300)}`;
      if (answer.statusCode < 300) record("ok", retries);
      else record(attempts.at(-1)?.class === "ambiguous" ? "ambiguous" : "failed", retries, problem);
    } catch (error) {
      const retries = error instanceof Error ? Math.max(0, attemptsOf(error).length - 1) : 0;
      record(error instanceof AmbiguousRequestError ? "ambiguous" : "failed", retries, String(error));
    }
  }

  #holdSocket(room: string): void {
    const socket = new CellSocket(this.#fleet, `/rooms/${room}/socket`, {
      keepalive: { intervalMs: 2_000, timeoutMs: 5_000 },
    });
    socket.addEventListener("open", () => {
      this.#tally.sockets.opened += 1;
    });
    this.#sockets.push(socket);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, this.#options.paceMs);
      const { signal } = this.#stop;
      signal.addEventListener("abort", done);
      function done() {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      }
    });
  }
}

/** The name that the application calls its fleet by; no such host exists. */
export const origin = "http://rooms.internal";
