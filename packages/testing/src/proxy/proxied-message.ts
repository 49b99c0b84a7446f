/** From whoever connected (`out`), or from the server behind the proxy (`back`). */
export type Direction = "out" | "back";

/** One message on its way. */
export interface ProxiedMessage {
  readonly direction: Direction;
  readonly bytes: Buffer;
  /** Which connection it is on, from 0. */
  readonly connection: number;
  /** How many messages came before it on this connection in this direction. */
  readonly index: number;
}

/** What the network does with a message. Whatever changes nothing else lets the messages behind it pass. */
export type NetworkFault =
  | { readonly kind: "pass" }
  /** It, and all behind it in its direction, come later. */
  | { readonly kind: "delay"; readonly delayMs: number }
  /** It, and all behind it in its direction, wait until the promise is settled. */
  | { readonly kind: "hold"; readonly until: Promise<unknown> }
  /** It gets lost alone. */
  | { readonly kind: "drop" }
  /** Other bytes come instead of it. */
  | { readonly kind: "replace"; readonly bytes: Uint8Array | string }
  /** It gets lost, and the connection is reset on both sides: a cut between two messages. */
  | { readonly kind: "cut" }
  /** So many bytes of it come, then the connection is reset on both sides; Node 22 ends it in order towards the receiver. */
  | { readonly kind: "truncate"; readonly afterBytes: number }
  /** It gets lost, and the connection is ended in order on both sides. */
  | { readonly kind: "end" }
  /** Half open: from it on nothing passes in either direction, and nothing is closed. */
  | { readonly kind: "freeze" }
  /** Its sender is reset at once; it arrives when the promise is settled, and what is answered goes nowhere. */
  | { readonly kind: "deliver-late"; readonly until: Promise<unknown> };
