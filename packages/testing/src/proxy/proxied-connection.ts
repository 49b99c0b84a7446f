// One connection through a faulty network: two sockets, two directions, each message met by what the test chose.
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { MessageEndFn } from "../core/message-ends.ts";
import type { Direction, NetworkFault, ProxiedMessage } from "./proxied-message.ts";

export interface ConnectionParts {
  readonly index: number;
  readonly target: { readonly host: string; readonly port: number };
  readonly ends: (direction: Direction) => MessageEndFn;
  readonly choose: (message: ProxiedMessage) => NetworkFault;
  readonly closed: (connection: ProxiedConnection) => void;
}

export class ProxiedConnection {
  readonly #parts: ConnectionParts;
  readonly #near: Socket;
  readonly #far: Socket;
  #frozen = false;
  /** The sender is gone, but what it sent is still to arrive. */
  #isAlone = false;

  constructor(near: Socket, parts: ConnectionParts) {
    this.#parts = parts;
    this.#near = near;
    this.#far = connect({ ...parts.target, allowHalfOpen: true, noDelay: true });
    this.#pass("out", near, this.#far);
    this.#pass("back", this.#far, near);
  }

  reset(): void {
    this.#near.resetAndDestroy();
    this.#far.resetAndDestroy();
  }

  end(): void {
    this.#near.end();
    this.#far.end();
  }

  /** Nothing passes any more, and nothing is closed. */
  freeze(): void {
    this.#frozen = true;
  }

  #pass(direction: Direction, from: Socket, to: Socket): void {
    const isWhole = this.#parts.ends(direction);
    let rest: Buffer = Buffer.alloc(0);
    let index = 0;
    let waiting: Promise<unknown> = Promise.resolve();
    const next = (step: () => unknown) => {
      waiting = waiting.then(() => (this.#frozen ? undefined : step()));
    };
    from.on("data", (chunk: Buffer) => {
      if (this.#frozen) return;
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (;;) {
        const length = rest.length === 0 ? undefined : isWhole(rest);
        if (length === undefined || length <= 0) return;
        const bytes = rest.subarray(0, length);
        rest = rest.subarray(length);
        const message = { direction, bytes, connection: this.#parts.index, index: index++ };
        const fault = this.#parts.choose(message);
        if (fault.kind === "deliver-late") {
          this.#isAlone = true;
          from.resetAndDestroy();
        }
        next(() => this.#meet(fault, bytes, from, to));
      }
    });
    from.on("end", () =>
      next(() => {
        if (rest.length > 0) to.write(rest);
        to.end();
      }),
    );
    from.on("error", () => from.destroy());
    from.once("close", () => {
      // What was sent before its end is still to arrive; what was reset resets the other side.
      const isOver = from.errored === null && from.readableEnded;
      if (!isOver && !this.#isAlone && !this.#frozen) to.resetAndDestroy();
      if (this.#near.closed && this.#far.closed) this.#parts.closed(this);
    });
  }

  #meet(fault: NetworkFault, bytes: Buffer, from: Socket, to: Socket): unknown {
    switch (fault.kind) {
      case "pass":
        return write(bytes, from, to);
      case "replace":
        return write(Buffer.from(fault.bytes), from, to);
      case "delay":
        return pause(fault.delayMs, undefined, { ref: false }).then(() =>
          this.#unlessFrozen(bytes, from, to),
        );
      case "hold":
      case "deliver-late":
        return fault.until.catch(() => undefined).then(() => this.#unlessFrozen(bytes, from, to));
      case "drop":
        return;
      case "cut":
        return this.#stop();
      case "truncate":
        return void to.write(bytes.subarray(0, fault.afterBytes), () => this.#stop());
      case "end":
        this.#frozen = true;
        return this.end();
      case "freeze":
        return this.freeze();
    }
  }

  #unlessFrozen(bytes: Buffer, from: Socket, to: Socket): void {
    if (!this.#frozen) write(bytes, from, to);
  }

  #stop(): void {
    this.#frozen = true;
    this.reset();
  }
}

/** The sender waits while the receiver takes nothing. */
function write(bytes: Uint8Array, from: Socket, to: Socket): void {
  if (to.destroyed || to.writableEnded || to.write(bytes)) return;
  from.pause();
  to.once("drain", () => from.resume());
}
