// One dial from the choice of a node to the verdict: evaluates target and headers, picks, dials, tells the node what was
// learnt about it, and classifies the answer.
import type { Socket } from "node:net";
import { Headers } from "undici";
import type { WebSocket } from "ws";
import type { ResolvedSocketOptions } from "./cell-socket-defaults.ts";
import { type Dial, type DialResult, dial } from "./cell-socket-dial.ts";
import type { SocketTarget } from "./cell-socket-options.ts";
import { type Prepared, prepare } from "./cell-socket-target.ts";
import { headerOf, type ResponseHeaders } from "./core/drain-marker.ts";
import { parseRetryAfter } from "./core/retry-plan.ts";
import type { SocketNode, SocketNodes } from "./core/socket-nodes.ts";
import { type UpgradeAction, type UpgradeFailure, upgradeAction } from "./core/socket-upgrade.ts";
import { ConfigurationError, SocketFatalError } from "./errors.ts";

/** What came of a dial. */
export type Dialled =
  | { readonly kind: "open"; readonly node: SocketNode; readonly socket: WebSocket; readonly stream: Socket }
  /** `node` is undefined when none was asked. */
  | {
      readonly kind: "failed";
      readonly node: SocketNode | undefined;
      readonly action: UpgradeAction;
      readonly error: Error;
    }
  /** No node is left that was not tried. */
  | { readonly kind: "no-node"; readonly error: Error };

/** What one dial needs to know beside the options. */
export interface DialTurn {
  readonly tried: ReadonlySet<string>;
  readonly avoided: ReadonlySet<string>;
  /** False: the dial does not keep the process alive. */
  readonly ref: boolean;
  /** A node was chosen and is dialled. */
  dialling(node: string): void;
  /** The end; not called after `abort`. Synchronous with the opening of the connection. */
  done(result: Dialled): void;
}

/** Dials for one socket. */
export class Dialler {
  readonly #nodes: SocketNodes;
  readonly #target: SocketTarget;
  readonly #options: ResolvedSocketOptions;
  /** What the last dial failed with, for those who ask why there is no node left. */
  #lastError: Error | undefined;

  constructor(nodes: SocketNodes, target: SocketTarget, options: ResolvedSocketOptions) {
    this.#nodes = nodes;
    this.#target = target;
    this.#options = options;
  }

  /** Begins a dial. */
  begin(turn: DialTurn): Dial {
    const state: { aborted: boolean; stop: (() => void) | undefined } = { aborted: false, stop: undefined };
    void this.#prepare().then((prepared) => {
      if (state.aborted) return;
      if ("error" in prepared) turn.done({ kind: "failed", node: undefined, ...prepared });
      else state.stop = this.#dial(prepared, turn);
    });
    return {
      abort() {
        state.aborted = true;
        state.stop?.();
      },
    };
  }

  async #prepare(): Promise<Prepared | { action: UpgradeAction; error: Error }> {
    try {
      await this.#nodes.ready();
      return await prepare(this.#target, this.#options.headers, this.#nodes.authority);
    } catch (cause) {
      if (cause instanceof ConfigurationError) return { action: { kind: "never" }, error: cause };
      const error = new SocketFatalError("the target or headers function failed", {}, { cause });
      return { action: upgradeAction({ kind: "not-prepared" }), error };
    }
  }

  /** @returns how to stop it */
  #dial(prepared: Prepared, turn: DialTurn): () => void {
    const nodes = this.#nodes;
    const stop = (): void => {};
    if (nodes.closed) {
      const error = new SocketFatalError("the fleet is closed, so nothing is dialled any more");
      turn.done({ kind: "failed", node: undefined, action: { kind: "never" }, error });
      return stop;
    }
    const node = nodes.pick(new Set([...turn.tried, ...turn.avoided])) ?? nodes.pick(turn.tried);
    if (node === undefined) {
      turn.done({ kind: "no-node", error: noNode(turn.tried, this.#lastError) });
      return stop;
    }
    turn.dialling(node.id);
    const dialled = node.dialling();
    const request = {
      ...this.#options,
      url: new URL(node.url.origin + prepared.path),
      headers: prepared.headers,
      authority: nodes.authority,
      tls: nodes.tls,
      ref: turn.ref,
    };
    try {
      const running = dial(request, (result) => {
        dialled();
        const judged = this.#judge(node, result);
        if (judged.kind === "failed") this.#lastError = judged.error;
        turn.done(judged);
      });
      return () => {
        dialled();
        running.abort();
      };
    } catch (cause) {
      dialled();
      const error = new SocketFatalError("the upgrade request could not be made", {}, { cause });
      turn.done({ kind: "failed", node, action: { kind: "never" }, error });
      return stop;
    }
  }

  #judge(node: SocketNode, result: DialResult): Dialled {
    if (result.kind === "open") {
      node.answered();
      return { ...result, node };
    }
    if (result.kind === "unreachable") {
      node.unreachable();
      const message = `${node.id} could not be reached: ${result.error.message}`;
      const error = new SocketFatalError(message, {}, { cause: result.error });
      return { kind: "failed", node, action: upgradeAction(result), error };
    }
    if (result.kind === "bad-handshake") {
      node.answered();
      const message = `${node.id} answered the upgrade with a 101 that is none: ${result.error.message}`;
      return {
        kind: "failed",
        node,
        action: upgradeAction(result),
        error: new SocketFatalError(message, {}, { cause: result.error }),
      };
    }
    return this.#judgeStatus(node, result);
  }

  #judgeStatus(node: SocketNode, result: Extract<DialResult, { kind: "status" }>): Dialled {
    const { body, headers, status } = result;
    const drained = this.#nodes.isDrainRefusal(status, headers, body);
    const retryAfterMs = parseRetryAfter(headerOf(headers, "retry-after"), Date.now(), Date.parse);
    if (drained) node.drained(retryAfterMs ?? 0);
    else node.answered();
    const failure: UpgradeFailure = { kind: "status", status, drained, retryAfterMs };
    const error = new SocketFatalError(`${node.id} answered the upgrade with ${status}`, { status, body });
    try {
      const override = drained
        ? undefined
        : this.#options.classifyUpgrade?.(status, toHeaders(headers), body);
      return { kind: "failed", node, action: upgradeAction(failure, override), error };
    } catch (cause) {
      const message = `classifyUpgrade failed for an upgrade that was answered with ${status}`;
      const failed = new SocketFatalError(message, { status, body }, { cause });
      return { kind: "failed", node, action: { kind: "never" }, error: failed };
    }
  }
}

function toHeaders(headers: ResponseHeaders): Headers {
  const result = new Headers();
  for (const name of Object.keys(headers)) result.set(name, headerOf(headers, name));
  return result;
}

function noNode(tried: ReadonlySet<string>, cause: Error | undefined): Error {
  if (tried.size === 0) return new SocketFatalError("no node to dial: every node is set aside");
  const last = cause === undefined ? "" : `; ${cause.message}`;
  return new SocketFatalError(`no node is left to dial after ${[...tried].join(", ")}${last}`, {}, { cause });
}
