/** What a {@link CellSocket} dispatches, and the typed `EventTarget` below it. */

/** The end of a connection: of the socket itself (event `close`), or, in `classifyClose`, of one connection. */
export class CellCloseEvent extends Event {
  /** The WebSocket close code; 1006 when there was no close frame. */
  readonly code: number;
  readonly reason: string;
  /** Both sides said goodbye. */
  readonly wasClean: boolean;
  /** Id of the node, when a connection had been open. */
  readonly node: string | undefined;
  /** Why the socket ended although nobody wanted it to. */
  readonly error: unknown;

  constructor(init: {
    code: number;
    reason: string;
    wasClean: boolean;
    node?: string | undefined;
    error?: unknown;
  }) {
    super("close");
    this.code = init.code;
    this.reason = init.reason;
    this.wasClean = init.wasClean;
    this.node = init.node;
    this.error = init.error;
  }
}

/** The socket has no connection and waits before it dials again. */
export class CellReconnectingEvent extends Event {
  /** Dials since the last connection that lasted. */
  readonly attempt: number;
  /** Time until the next dial, milliseconds. */
  readonly delayMs: number;
  /** What the connection closed with, when one had been open. */
  readonly close: { readonly code: number; readonly reason: string } | undefined;
  /** What the last dial failed with, when it was a dial. */
  readonly error: unknown;

  constructor(init: {
    attempt: number;
    delayMs: number;
    close?: { code: number; reason: string } | undefined;
    error?: unknown;
  }) {
    super("reconnecting");
    this.attempt = init.attempt;
    this.delayMs = init.delayMs;
    this.close = init.close;
    this.error = init.error;
  }
}

/** The socket ended for good because of `error`; a `close` event follows. */
export class CellErrorEvent extends Event {
  readonly error: unknown;

  constructor(error: unknown) {
    super("error");
    this.error = error;
  }
}

/** A message that arrived: text, or binary in the form that `binaryType` names. */
export class CellMessageEvent extends Event {
  readonly data: string | ArrayBuffer | Uint8Array;

  constructor(data: string | ArrayBuffer | Uint8Array) {
    super("message");
    this.data = data;
  }
}

/** Event names and what their listeners get. */
export interface CellSocketEvents {
  /** A connection is open and `onOpen` is done; fires again after every reconnect. */
  open: Event;
  message: CellMessageEvent;
  reconnecting: CellReconnectingEvent;
  error: CellErrorEvent;
  /** Once, at the very end. */
  close: CellCloseEvent;
}

/** A listener of one kind of event. What it throws is reported as an uncaught exception and disturbs nothing here. */
export type CellSocketListener<Name extends keyof CellSocketEvents> =
  | ((event: CellSocketEvents[Name]) => void)
  | { handleEvent(event: CellSocketEvents[Name]): void };

type Handler<Name extends keyof CellSocketEvents> = ((event: CellSocketEvents[Name]) => void) | null;
type ListenerOptions =
  | boolean
  | { once?: boolean; passive?: boolean; capture?: boolean; signal?: AbortSignal };

/** An `EventTarget` with typed listeners and `on…` properties. */
export abstract class CellSocketTarget extends EventTarget {
  readonly #handlers = new Map<
    string,
    { handler: (event: never) => void; listener: (event: Event) => void }
  >();

  override addEventListener<Name extends keyof CellSocketEvents>(
    type: Name,
    listener: CellSocketListener<Name> | null,
    options?: ListenerOptions,
  ): void {
    if (listener === null) return;
    this.listenerAdded(type);
    super.addEventListener(type, listener as (event: Event) => void, options);
  }

  override removeEventListener<Name extends keyof CellSocketEvents>(
    type: Name,
    listener: CellSocketListener<Name> | null,
    options?: ListenerOptions,
  ): void {
    if (listener !== null) super.removeEventListener(type, listener as (event: Event) => void, options);
  }

  /** Somebody listens to this kind of event. */
  protected abstract listenerAdded(type: keyof CellSocketEvents): void;

  get onopen(): Handler<"open"> {
    return this.#handler("open");
  }
  set onopen(handler: Handler<"open">) {
    this.#setHandler("open", handler);
  }

  get onmessage(): Handler<"message"> {
    return this.#handler("message");
  }
  set onmessage(handler: Handler<"message">) {
    this.#setHandler("message", handler);
  }

  get onreconnecting(): Handler<"reconnecting"> {
    return this.#handler("reconnecting");
  }
  set onreconnecting(handler: Handler<"reconnecting">) {
    this.#setHandler("reconnecting", handler);
  }

  get onerror(): Handler<"error"> {
    return this.#handler("error");
  }
  set onerror(handler: Handler<"error">) {
    this.#setHandler("error", handler);
  }

  get onclose(): Handler<"close"> {
    return this.#handler("close");
  }
  set onclose(handler: Handler<"close">) {
    this.#setHandler("close", handler);
  }

  #handler<Name extends keyof CellSocketEvents>(name: Name): Handler<Name> {
    return (this.#handlers.get(name)?.handler as Handler<Name>) ?? null;
  }

  #setHandler<Name extends keyof CellSocketEvents>(name: Name, handler: Handler<Name>): void {
    const former = this.#handlers.get(name);
    if (former !== undefined) this.removeEventListener(name, former.listener);
    this.#handlers.delete(name);
    if (handler === null) return;
    const listener = (event: Event): void => handler.call(this, event as CellSocketEvents[Name]);
    this.#handlers.set(name, { handler, listener });
    this.addEventListener(name, listener);
  }
}
