/** Carries bytes between two streams, both ways, until both directions have ended or either fails. */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Who hears of the end. */
export interface CarryListeners {
  /** Both streams are closed, however that came. */
  closed?: () => void;
  /** One of them failed; the other is destroyed. */
  failed?: (error: Error) => void;
}

/** Joins two half-open streams. An end in one direction is passed on; a failure, or a cut, destroys both. */
export function carry(one: Duplex, other: Duplex, { closed, failed }: CarryListeners = {}): void {
  let open = 2;
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", (error) => {
      failed?.(error);
      cut(to);
    });
    from.once("close", () => {
      // Ended both ways, or cut: what is written to the other after an end is still on its way.
      if (!from.readableEnded || !from.writableFinished) cut(to);
      open -= 1;
      if (open === 0) closed?.();
    });
    from.pipe(to);
  }
}

/** Ends a stream so that nobody takes it for a whole one: a TCP connection by a reset. */
export function cut(stream: Duplex): void {
  if (!(stream instanceof Socket) || stream.destroyed) {
    stream.destroy();
    return;
  }
  try {
    stream.resetAndDestroy();
  } catch {
    // A unix socket knows no reset; whoever reads a message from it knows from the message that it is not whole.
    stream.destroy();
  }
}
