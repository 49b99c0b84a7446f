// A request inside a tunnel: its body is bounded to the byte, and the control headers are taken off before a handler
// looks at it.

import { type IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type ControlHeaders, isReservedHeader, takeControlHeaders } from "./call-headers.ts";

/** The class of requests whose body has at most `maxBodyBytes`; what happens beyond is up to `tooLarge`. */
export function boundedRequest(maxBodyBytes: number): typeof CallRequest {
  return class extends CallRequest {
    constructor(socket: Socket) {
      super(socket, maxBodyBytes);
    }
  };
}

/** Of requests that had any; they come with the end of the body. */
const trailersOf = new WeakMap<CallRequest, string[]>();

export class CallRequest extends IncomingMessage {
  readonly #maxBodyBytes: number;
  #bodyBytes = 0;
  /** Told once when the body goes beyond its bound; nothing more of it is read. */
  tooLarge: (() => void) | undefined;

  static {
    // What Node sets once the body has ended; no control header is among them for anybody who looks.
    Object.defineProperty(CallRequest.prototype, "rawTrailers", {
      get(this: CallRequest) {
        return trailersOf.get(this) ?? [];
      },
      set(this: CallRequest, pairs: string[]) {
        if (pairs.length === 0) return;
        takeControlHeaders(pairs);
        trailersOf.set(this, pairs);
      },
    });
    Object.defineProperty(CallRequest.prototype, "trailersDistinct", {
      get(this: CallRequest) {
        return distinct(this.rawTrailers);
      },
    });
    Object.defineProperty(CallRequest.prototype, "trailers", {
      get(this: CallRequest) {
        const joined = Object.entries(distinct(this.rawTrailers)).map(([name, all]) => [
          name,
          all?.join(", "),
        ]);
        return Object.fromEntries(joined);
      },
    });
    // Node reads these from the head as it came, control headers included.
    Object.defineProperty(CallRequest.prototype, "headersDistinct", {
      get(this: CallRequest) {
        return distinct(this.rawHeaders);
      },
    });
  }

  constructor(socket: Socket, maxBodyBytes = Number.MAX_SAFE_INTEGER) {
    super(socket);
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Whether the head already says that the body is too large. */
  get declaresTooMuch(): boolean {
    return Number(this.headers["content-length"] ?? 0) > this.#maxBodyBytes;
  }

  /** Takes the reserved headers off, so that a handler sees what the application sent and nothing else. Once. */
  takeControl(): ControlHeaders {
    const { headers } = this;
    const control = takeControlHeaders(this.rawHeaders);
    // Copied, since an object from which properties were deleted is slow for all who read it.
    const own: IncomingHttpHeaders = {};
    for (const name in headers) if (!isReservedHeader(name)) own[name] = headers[name];
    this.headers = own;
    return control;
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (chunk !== null) {
      this.#bodyBytes += (chunk as Uint8Array).length;
      if (this.#bodyBytes > this.#maxBodyBytes) {
        this.tooLarge?.();
        this.tooLarge = undefined;
        return false;
      }
    }
    return super.push(chunk, encoding);
  }
}

function distinct(rawHeaders: readonly string[]): NodeJS.Dict<string[]> {
  const all: NodeJS.Dict<string[]> = {};
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? "").toLowerCase();
    const values = all[name] ?? [];
    values.push(rawHeaders[i + 1] ?? "");
    all[name] = values;
  }
  return all;
}
