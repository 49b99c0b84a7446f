// Whether a call is in a tunnel at the moment: what a drain waits for. Tunnels are kept for the next call, and nobody waits
// for those.
import { RequestTracker, ResponseTracker } from "@cellkit/splice";

/** Follows the bytes of one tunnel, which go on as they are. */
export class CallWatch {
  readonly #requests = new RequestTracker();
  readonly #answers = new ResponseTracker();
  /** What was seen is no sequence of calls: nothing is known but that the tunnel is open. */
  #lost = false;

  /** A request has begun whose answer is not whole. An open WebSocket is no call. */
  get busy(): boolean {
    if (this.#lost) return true;
    return this.#requests.state !== "idle" && this.#answers.state !== "tunnel";
  }

  /** Bytes of the caller. */
  sent(chunk: Uint8Array): void {
    this.#follow(chunk, (from) => {
      const isNew = this.#requests.head === undefined;
      const end = this.#requests.push(chunk, from);
      if (isNew && this.#requests.head !== undefined) this.#answers.expect(this.#requests.head.method);
      return end;
    });
  }

  /** Bytes of the answering side. */
  answered(chunk: Uint8Array): void {
    this.#follow(chunk, (from) => this.#answers.push(chunk, from));
  }

  #follow(chunk: Uint8Array, push: (from: number) => number): void {
    let at = 0;
    while (at < chunk.length && !this.#lost && this.#answers.state !== "tunnel") {
      const from = at;
      try {
        at = push(from);
      } catch {
        // It cannot be framed. Both ends decide for themselves what that means.
        this.#lost = true;
      }
      if (this.#requests.state === "complete" && this.#answers.state === "complete") this.#requests.next();
      else if (at === from) this.#lost = true;
    }
  }
}
