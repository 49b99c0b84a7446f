// Keeps one connection alive: dials, hears how that ended, asks the plan what to do next, does it. The plan and the tables
// decide; this file owns the timer, the dial and the connection, of which there is at most one each.
import { Connection, type ConnectionClose } from "./cell-socket-connection.ts";
import type { ResolvedSocketOptions } from "./cell-socket-defaults.ts";
import type { Dial } from "./cell-socket-dial.ts";
import type { Dialled, Dialler } from "./cell-socket-dialler.ts";
import { CellCloseEvent } from "./cell-socket-events.ts";
import { type CloseRule, closeRule } from "./core/close-codes.ts";
import type { SocketNode, SocketNodes } from "./core/socket-nodes.ts";
import { ReconnectPlan, type ReconnectStep } from "./core/socket-reconnect.ts";
import { SocketFatalError } from "./errors.ts";

/** Most that a leaving connection waits for the peer's goodbye before the next node is dialled, milliseconds. */
const LEAVE_WAIT_MS = 1_000;
/** When no other node is there to go to, a connection that should leave looks again after this, milliseconds. */
const LOOK_AGAIN_MS = 1_000;

/** Why a link has no connection. */
export interface LinkLoss {
  /** What the connection closed with, when one had been open, and to which node it was. */
  readonly close?: { readonly code: number; readonly reason: string };
  readonly node?: string;
  readonly error?: Error | undefined;
}

/** What a link tells its socket. */
export interface LinkListener {
  /** A connection is there; nothing was sent on it yet. */
  connected(connection: Connection, attempt: number): void;
  /** A connection ended, whatever comes next. */
  disconnected(node: string, close: ConnectionClose): void;
  /** There is no connection; the next dial begins after `delayMs`. */
  waiting(loss: LinkLoss, attempt: number, delayMs: number): void;
  /** The connection is being left for another node: nothing more can be sent on it. */
  migrating(node: string): void;
  /** It is over. */
  ended(event: CellCloseEvent): void;
  text(text: string, sizeBytes: number): void;
  binary(data: Buffer): void;
  flushed(): void;
  pinged(node: string, result: { rttMs: number } | { misconfigured: true }): void;
}

/** The dialling and redialling of one socket. */
export class SocketLink {
  readonly #nodes: SocketNodes;
  readonly #options: ResolvedSocketOptions;
  readonly #listener: LinkListener;
  readonly #dialler: Dialler;
  readonly #plan: ReconnectPlan;
  #dial: Dial | undefined;
  /** Before the next dial. */
  #timer: NodeJS.Timeout | undefined;
  #connection: Connection | undefined;
  #unwatch: (() => void) | undefined;
  /** Before the connection is left, and while the peer's goodbye is awaited. */
  #leaveTimer: NodeJS.Timeout | undefined;
  #leaving = false;
  #closing: { readonly error: unknown } | undefined;
  #ended = false;
  #ref = true;

  constructor(nodes: SocketNodes, dialler: Dialler, options: ResolvedSocketOptions, listener: LinkListener) {
    this.#nodes = nodes;
    this.#options = options;
    this.#listener = listener;
    this.#dialler = dialler;
    this.#plan = new ReconnectPlan(options.reconnect, () => nodes.random(), nodes.now());
  }

  /** The connection, while one is open and is to stay. */
  get connection(): Connection | undefined {
    return this.#leaving ? undefined : this.#connection;
  }

  /** Dials, unless a dial is under way. */
  dial(): void {
    if (this.#dial !== undefined || this.#ended) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#dial = this.#dialler.begin({
      tried: this.#plan.tried,
      avoided: this.#plan.avoided,
      ref: this.#ref,
      dialling: (node) => this.#plan.dialing(node),
      done: (result) => {
        this.#dial = undefined;
        this.#dialled(result);
      },
    });
  }

  /** Leaves the connection, or the wait for the next dial, and dials now. Does nothing while a dial is under way. */
  reconnect(reason: string): void {
    if (this.#ended || this.#closing !== undefined || this.#dial !== undefined || this.#leaving) return;
    const connection = this.#release();
    connection?.detach();
    connection?.close(1001, reason);
    if (connection !== undefined) this.#listener.disconnected(connection.node.id, left(reason));
    this.#follow(this.#plan.leave(connection?.node.id, this.#nodes.now()), {}, connection !== undefined);
  }

  /** The new connection is of no use, since `onOpen` failed: gives it up, and dials again after backoff. */
  giveUp(connection: Connection, cause: Error): void {
    if (connection !== this.#connection || this.#closing !== undefined) return;
    connection.detach();
    connection.close(4000, "onOpen failed");
    this.#closed(connection.node, { code: 4000, reason: "onOpen failed", wasClean: false, cause });
  }

  /** Closes for good. `error`: what the callers who wait shall get; undefined when this is what they wanted. */
  close(code: number, reason: string, error: unknown): void {
    if (this.#ended || this.#closing !== undefined) return;
    this.#closing = { error };
    this.#dial?.abort();
    this.#dial = undefined;
    clearTimeout(this.#timer);
    clearTimeout(this.#leaveTimer);
    if (this.#connection !== undefined) this.#connection.close(code, reason);
    else this.#end(new CellCloseEvent({ code, reason, wasClean: true, error }));
  }

  ref(): void {
    this.#ref = true;
    this.#timer?.ref();
    this.#connection?.ref();
  }

  unref(): void {
    this.#ref = false;
    this.#timer?.unref();
    this.#connection?.unref();
  }

  #dialled(result: Dialled): void {
    const nowMs = this.#nodes.now();
    if (result.kind === "open") {
      this.#opened(result, nowMs);
    } else if (result.kind === "no-node") {
      this.#follow(this.#plan.roundOver(nowMs), { error: result.error }, true);
    } else {
      const step = this.#plan.upgradeFailed(result.action, result.node?.id, nowMs);
      this.#follow(step, { error: result.error }, result.action.kind === "backoff");
    }
  }

  #opened({ node, socket, stream }: Extract<Dialled, { kind: "open" }>, nowMs: number): void {
    const attempt = this.#plan.attempts;
    this.#plan.opened(nowMs);
    const listener = this.#listener;
    const parts = {
      node,
      socket,
      stream,
      keepalive: this.#options.keepalive,
      now: () => this.#nodes.now(),
      random: () => this.#nodes.random(),
    };
    const connection = new Connection(parts, {
      text: (text, sizeBytes) => listener.text(text, sizeBytes),
      binary: (data) => listener.binary(data),
      flushed: () => listener.flushed(),
      pinged: (ping) => listener.pinged(node.id, ping),
      closed: (close) => this.#closed(node, close),
    });
    this.#connection = connection;
    if (!this.#ref) connection.unref();
    this.#unwatch = node.watch(() => this.#nodeChanged(connection));
    listener.connected(connection, attempt);
    this.#nodeChanged(connection);
  }

  #closed(node: SocketNode, close: ConnectionClose): void {
    this.#release();
    this.#listener.disconnected(node.id, close);
    if (this.#closing !== undefined) {
      this.#end(new CellCloseEvent({ ...close, node: node.id, error: this.#closing.error }));
    } else if (this.#leaving) {
      this.#leaving = false;
      this.#follow(this.#plan.leave(node.id, this.#nodes.now()), {}, false);
    } else {
      this.#lost(node, close, this.#nodes.now());
    }
  }

  #lost(node: SocketNode, close: ConnectionClose, nowMs: number): void {
    const loss = { close, node: node.id, error: close.cause };
    let rule: CloseRule;
    try {
      rule = this.#ruleFor(node, close, nowMs);
    } catch (cause) {
      const details = { closeCode: close.code };
      const error = new SocketFatalError(`classifyClose failed for a close with ${close.code}`, details, {
        cause,
      });
      this.#end(new CellCloseEvent({ ...close, wasClean: false, node: node.id, error }));
      return;
    }
    if (rule.node === "drain") node.drained(0);
    if (rule.node === "probe") node.probe();
    this.#follow(this.#plan.closed(rule, node.id, nowMs), loss, true);
  }

  /** @throws what the application's `classifyClose` threw */
  #ruleFor(node: SocketNode, close: ConnectionClose, nowMs: number): CloseRule {
    const { classifyClose, reconnect, reconnectOnNormal } = this.#options;
    const { minUptimeMs } = reconnect;
    const upMs = this.#plan.upMs(nowMs);
    const rule = closeRule(close.code, close.reason, { upMs, minUptimeMs, reconnectOnNormal });
    const action = classifyClose?.(new CellCloseEvent({ ...close, node: node.id, error: close.cause }));
    return action === undefined ? rule : { ...rule, action };
  }

  #follow(step: ReconnectStep, loss: LinkLoss, tell: boolean): void {
    if (step.kind === "stop") {
      this.#end(endOf(step.why, loss, this.#plan.attempts));
      return;
    }
    if (tell) this.#listener.waiting(loss, this.#plan.attempts, step.delayMs);
    // A listener may have closed the socket, or told it to dial now.
    if (this.#ended || this.#closing !== undefined || this.#dial !== undefined) return;
    if (step.delayMs === 0) {
      this.dial();
      return;
    }
    this.#timer = setTimeout(() => this.dial(), step.delayMs);
    if (!this.#ref) this.#timer.unref();
  }

  /** The node of the open connection may be leaving: so does the connection then, at a random moment, if it can. */
  #nodeChanged(connection: Connection): void {
    if (!this.#options.migrate || connection !== this.#connection || this.#closing !== undefined) return;
    if (!connection.node.leaving) {
      if (!this.#leaving) clearTimeout(this.#leaveTimer);
      if (!this.#leaving) this.#leaveTimer = undefined;
      return;
    }
    if (this.#leaveTimer === undefined) this.#leaveSoon(connection, this.#options.reconnect.spreadMs);
  }

  #leaveSoon(connection: Connection, withinMs: number): void {
    this.#leaveTimer = setTimeout(() => this.#leave(connection), withinMs * this.#nodes.random());
    this.#leaveTimer.unref();
  }

  #leave(connection: Connection): void {
    if (!this.#nodes.hasOther(connection.node.id)) {
      this.#leaveSoon(connection, LOOK_AGAIN_MS);
      return;
    }
    this.#leaving = true;
    this.#listener.migrating(connection.node.id);
    connection.close(1001, "migrating");
    this.#leaveTimer = setTimeout(() => connection.terminate(1006, "migrating"), LEAVE_WAIT_MS);
  }

  #release(): Connection | undefined {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#unwatch?.();
    this.#unwatch = undefined;
    clearTimeout(this.#leaveTimer);
    this.#leaveTimer = undefined;
    return connection;
  }

  #end(event: CellCloseEvent): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#listener.ended(event);
  }
}

function left(reason: string): ConnectionClose {
  return { code: 1001, reason, wasClean: true, cause: undefined };
}

/** The last event of a socket that stops by itself. */
function endOf(why: "done" | "fatal" | "gave-up", loss: LinkLoss, attempts: number): CellCloseEvent {
  const { close, error: cause, node } = loss;
  const { code, reason } = close ?? { code: 1006, reason: "" };
  if (why === "done") return new CellCloseEvent({ code, reason, wasClean: true, node });
  const details = close === undefined ? {} : { closeCode: code };
  let error: Error;
  if (why === "gave-up") error = new SocketFatalError(`gave up after ${attempts} dials`, details, { cause });
  else if (close === undefined && cause !== undefined) error = cause;
  else
    error = new SocketFatalError(
      `the connection was closed with ${code}${reason && ` (${reason})`}`,
      details,
      { cause },
    );
  return new CellCloseEvent({ code, reason, wasClean: false, node, error });
}
