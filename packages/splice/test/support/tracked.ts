// Runs a tracker over pieces of input and writes down what it found, in a form that does not depend on the pieces.

import { RequestTracker } from "../../src/core/request-tracker.ts";
import { ResponseTracker } from "../../src/core/response-tracker.ts";
import { FramingError } from "../../src/errors.ts";

/** Each message found: its head and the offset of its end; at last the state, or the rule that refused the rest. */
export interface Track {
  messages: {
    head: Record<string, unknown>;
    headBytes: string;
    bodyStart: number;
    end: number | undefined;
  }[];
  last: string;
}

export function trackRequests(pieces: readonly Uint8Array[], reservedField?: string): Track {
  const tracker = new RequestTracker(reservedField === undefined ? {} : { reservedField });
  const track: Track = { messages: [], last: "" };
  let base = 0;
  try {
    for (const piece of pieces) {
      let offset = 0;
      while (offset < piece.length) {
        const hadHead = tracker.head !== undefined;
        offset = tracker.push(piece, offset);
        if (tracker.head !== undefined && !hadHead) {
          const { bytes, ...head } = tracker.head;
          const headBytes = Buffer.from(bytes).toString("latin1");
          track.messages.push({ head, headBytes, bodyStart: base + offset, end: undefined });
        }
        if (tracker.state === "complete") {
          const message = track.messages.at(-1);
          if (message !== undefined) message.end = base + offset;
          tracker.next();
        }
      }
      base += piece.length;
    }
    track.last = tracker.state;
  } catch (error) {
    if (!(error instanceof FramingError)) throw error;
    track.last = `refused: ${error.rule}`;
  }
  return track;
}

export function trackResponse(pieces: readonly Uint8Array[], method = "GET"): Track {
  const tracker = new ResponseTracker();
  const track: Track = { messages: [], last: "" };
  tracker.expect(method);
  let base = 0;
  try {
    for (const piece of pieces) {
      let offset = 0;
      while (offset < piece.length && !isOver(tracker)) {
        const before = tracker.head;
        offset = tracker.push(piece, offset);
        if (tracker.head !== undefined && tracker.head !== before) {
          const { bytes, ...head } = tracker.head;
          const headBytes = Buffer.from(bytes).toString("latin1");
          track.messages.push({ head, headBytes, bodyStart: base + offset, end: undefined });
        }
        const message = track.messages.at(-1);
        if (tracker.state === "complete" && message !== undefined) message.end = base + offset;
      }
      base += piece.length;
    }
    track.last = tracker.untilClose ? "until close" : tracker.state;
  } catch (error) {
    if (!(error instanceof FramingError)) throw error;
    track.last = `refused: ${error.rule}`;
  }
  return track;
}

function isOver({ state }: ResponseTracker): boolean {
  return state === "complete" || state === "tunnel";
}
