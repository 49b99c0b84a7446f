// Calls to any cell of a fleet, from outside of its nodes: every node serves every cell, so any live one will do.

import { type Duplex, Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { attemptCall } from "./call-attempts.ts";
import { cancelCall } from "./cancel-call.ts";
import { type CellAddress, currentScript, type ResolvedCell, resolveCell } from "./cell-address.ts";
import {
  callError,
  checkContentLength,
  checkedUrl,
  jsonArguments,
  withoutFragment,
} from "./checked-request.ts";
import { PeerOptionError, TunnelLostError } from "./errors.ts";
import type { FleetStore } from "./fleet-store.ts";
import { handshake, webSocketKey } from "./handshake.ts";
import { type InnerTarget, innerHeaders } from "./inner-request.ts";
import { LapsedPeers } from "./lapsed-peers.ts";
import { NodeDirectory } from "./node-directory.ts";
import { type PeerConnection, type PeerRejection, takeSocket } from "./peer-connection.ts";
import { judgeAnswer, rpcResult, toResponse } from "./peer-response.ts";
import { PeerSocket } from "./peer-socket.ts";
import { requestIds } from "./random-ids.ts";
import { sentBody } from "./sent-body.ts";
import { keyOf, type Peer, TunnelPool, type TunnelPoolOptions } from "./tunnel-pool.ts";
import type { DialBounds } from "./tunnel-route.ts";

export interface PeerClientOptions extends TunnelPoolOptions {
  /** The fleet's bucket: where its nodes are found. */
  store: FleetStore;
  /** Name of the script whose cells are called. @default that of `deploy/current.json`, read once */
  script?: string;
  /** Shared with others who look for nodes. @default one of its own */
  directory?: NodeDirectory;
  /**
   * How long a call looks for an owner when nodes say that they are none, or nothing at all; the last one that is tried has
   * a second at least. @default 15000
   */
  deadlineMs?: number;
  /** How long answers that are under way may take after `close()`; then they are cut, 0 to 600000. @default 5000 */
  closeGraceMs?: number;
  /** How often it is looked whether a node that is being called still lives. @default 1000 */
  lapseCheckMs?: number;
}

const defaultDeadlineMs = 15_000;
const defaultCloseGraceMs = 5_000;
const maxCloseGraceMs = 600_000;
const defaultLapseCheckMs = 1_000;
/** The directory's answer may be this old: with the look each second, a lapsed node is cut within two. */
const directoryCacheMs = 500;

/** Calls cells of a fleet. A call is made again only when it is proven that no handler ran. */
export class PeerClient implements AsyncDisposable {
  readonly #options: PeerClientOptions;
  readonly #directory: NodeDirectory;
  readonly #pool: TunnelPool;
  readonly #lapsed: LapsedPeers;
  readonly #sockets = new Map<Duplex, string>();
  readonly #nextId = requestIds();
  readonly #closeGraceMs: number;
  /** Aborted by `close()`: ends handshakes, whose sockets nobody would take. */
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;
  #script: Promise<string> | undefined;

  /** @throws PeerOptionError (CELLKIT_PEER_OPTION) */
  constructor(options: PeerClientOptions) {
    this.#options = options;
    const { store, script, clock, directory, lapseCheckMs = defaultLapseCheckMs } = options;
    const { closeGraceMs = defaultCloseGraceMs } = options;
    if (!(closeGraceMs >= 0 && closeGraceMs <= maxCloseGraceMs)) {
      throw new PeerOptionError("closeGraceMs", `is ${closeGraceMs}: use 0 to ${maxCloseGraceMs}`);
    }
    this.#closeGraceMs = closeGraceMs;
    this.#directory =
      directory ??
      new NodeDirectory(store, { cacheMs: directoryCacheMs, ...(clock === undefined ? {} : { clock }) });
    this.#pool = new TunnelPool(options);
    this.#script = script === undefined ? undefined : Promise.resolve(script);
    this.#lapsed = new LapsedPeers(
      this.#directory,
      { nodes: () => [...this.#pool.nodes, ...this.#sockets.values()], cut: (node) => this.#cut(node) },
      lapseCheckMs,
    );
  }

  /**
   * Sends a request to a cell; its URL is what the cell sees. Redirects are the caller's. Bodies stream both ways; what
   * is less than 1 MiB and there at once is sent whole, which lets it survive a change of the cell's owner. Read or cancel
   * the answer's body: until then it has its tunnel.
   * @throws PeerError; TypeError for what is no request; the signal's reason. Errors of the answer's body mean that the
   *   owner was lost or the caller gave up: whether the handler ran to its end is unknown
   */
  async fetch(cell: CellAddress, input: Request | string | URL, init?: RequestInit): Promise<Response> {
    const request = input instanceof Request && init === undefined ? input : new Request(input, init);
    const { signal } = request;
    const url = checkedUrl(request.url);
    const resolved = await this.#resolve(cell, signal);
    let bodyStarted = false;
    const body = await sentBody(request.body);
    checkContentLength(
      request.headers.get("content-length"),
      "whole" in body ? (body.whole?.length ?? 0) : undefined,
    );
    async function* pieces(stream: AsyncIterable<Uint8Array>) {
      bodyStarted = true;
      yield* stream;
    }
    const attempt = async (peer: Peer, dialEndMs: number) => {
      const target: InnerTarget = { ...resolved, requestId: this.#nextId() };
      const answer = await this.#send(peer, target, "do", {
        dialEndMs,
        path: withoutFragment(url),
        method: request.method as Dispatcher.HttpMethod,
        headers: innerHeaders(target, url, request.headers),
        body: "whole" in body ? body.whole : Readable.from(pieces(body.stream)),
        signal,
      });
      return toResponse(peer, answer, request.method);
    };
    return attemptCall(
      this.#directory,
      attempt,
      this.#attemptOptions(signal, () => bodyStarted),
    );
  }

  /**
   * Calls a method of a cell with JSON arguments.
   * @throws RpcFailure (CELLKIT_PEER_RPC_FAILED) when the method did, other PeerErrors, the signal's reason
   */
  async rpc(
    cell: CellAddress,
    call: { method: string; args?: readonly unknown[] },
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<unknown> {
    const resolved = await this.#resolve(cell, signal);
    const body = jsonArguments(call.args ?? []);
    const attempt = async (peer: Peer, dialEndMs: number) => {
      const target: InnerTarget = { ...resolved, requestId: this.#nextId() };
      const headers = innerHeaders(target, new URL("http://cell/"), [["content-type", "application/json"]]);
      headers.push("x-cells-rpc-method", call.method);
      const answer = await this.#send(peer, target, "rpc", {
        dialEndMs,
        path: "/",
        method: "POST",
        headers,
        body,
        signal: signal ?? null,
      });
      const text = await answer.body.text().catch((error) => {
        throw signal?.aborted ? signal.reason : callError(error);
      });
      return rpcResult(peer, answer.statusCode, text);
    };
    return attemptCall(
      this.#directory,
      attempt,
      this.#attemptOptions(signal, () => false),
    );
  }

  /**
   * Opens a WebSocket to a cell. A request that has a `Sec-WebSocket-Key` is the handshake of a client that is to be
   * spliced; without one a key is made.
   * @throws as {@link fetch}
   */
  async connect(
    cell: CellAddress,
    input: Request | string | URL,
    init?: RequestInit,
  ): Promise<PeerConnection | PeerRejection> {
    const request = input instanceof Request && init === undefined ? input : new Request(input, init);
    const signal = AbortSignal.any([request.signal, this.#closing.signal]);
    const url = checkedUrl(request.url);
    const resolved = await this.#resolve(cell, signal);
    const headers = new Headers(request.headers);
    const key = headers.get("sec-websocket-key") ?? webSocketKey();
    headers.set("sec-websocket-key", key);
    if (!headers.has("sec-websocket-version")) headers.set("sec-websocket-version", "13");
    const attempt = async (peer: Peer, dialEndMs: number): Promise<PeerConnection | PeerRejection> => {
      const target: InnerTarget = { ...resolved, requestId: this.#nextId() };
      this.#lapsed.watch();
      const path = withoutFragment(url);
      const sent = { path, headers: innerHeaders(target, url, headers), signal, dialEndMs };
      const dispatcher = await this.#pool.dispatcher(peer, "do");
      const answer = await handshake(dispatcher, sent, signal).catch((error) => {
        throw this.#failed(error, peer, target, signal);
      });
      if (answer.kind === "response") {
        const rejection = { ...answer, statusCode: answer.status };
        judgeAnswer(peer, rejection);
        return { kind: "response", response: toResponse(peer, rejection, "GET") };
      }
      const connection = takeSocket(answer, key);
      this.#sockets.set(connection.socket, peer.node);
      connection.socket.once("close", () => this.#sockets.delete(connection.socket));
      return connection;
    };
    return attemptCall(
      this.#directory,
      attempt,
      this.#attemptOptions(signal, () => false),
    );
  }

  /** What is open at this instant. */
  counts(): { tunnels: number; idle: number; sockets: number } {
    return { ...this.#pool.counts(), sockets: this.#sockets.size };
  }

  /**
   * Lets calls be answered and their bodies be read for `closeGraceMs`, then ends their tunnels; cuts WebSockets, and
   * handshakes that are under way. Idempotent.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#closing.abort(new TunnelLostError("the client was closed"));
    for (const socket of this.#sockets.keys()) socket.destroy();
    const late = setTimeout(() => void this.#pool.destroy(), this.#closeGraceMs);
    try {
      await this.#pool.close();
    } finally {
      clearTimeout(late);
      this.#lapsed.stop();
    }
  }

  async #resolve(cell: CellAddress, signal: AbortSignal | undefined): Promise<ResolvedCell> {
    if (this.#script === undefined) {
      const reading = currentScript(this.#options.store, signal);
      this.#script = reading;
      // A failure is the first caller's; the next one reads again.
      reading.catch(() => {
        this.#script = undefined;
      });
    }
    return resolveCell(await this.#script, cell);
  }

  #attemptOptions(signal: AbortSignal | undefined, bodyStarted: () => boolean) {
    return { deadlineMs: this.#options.deadlineMs ?? defaultDeadlineMs, signal, bodyStarted };
  }

  /** One attempt: the answer with its head judged, and its cancellation seen to. */
  async #send(
    peer: Peer,
    target: InnerTarget,
    kind: "do" | "rpc",
    options: Dispatcher.RequestOptions & DialBounds,
  ): Promise<Dispatcher.ResponseData> {
    this.#lapsed.watch();
    const dispatcher = await this.#pool.dispatcher(peer, kind);
    const answer = await dispatcher.request(options).catch((error) => {
      throw this.#failed(error, peer, target, options.signal as AbortSignal | undefined);
    });
    const { body } = answer;
    judgeAnswer(peer, answer);
    body.once("close", () => {
      if (!body.readableEnded) this.#cancel(peer, target);
    });
    return answer;
  }

  /** The error of a call that got no answer. */
  #failed(error: unknown, peer: Peer, target: InnerTarget, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) {
      this.#cancel(peer, target);
      return signal.reason;
    }
    return callError(error);
  }

  #cancel(peer: Peer, target: InnerTarget): void {
    const { self, key, clock = Date.now } = this.#options;
    cancelCall(peer, target, { self, key: keyOf(key), timeMs: clock() });
  }

  #cut(node: string): void {
    this.#pool.cut(node);
    for (const [socket, owner] of this.#sockets)
      if (owner === node && socket instanceof PeerSocket) socket.lose();
  }
}
