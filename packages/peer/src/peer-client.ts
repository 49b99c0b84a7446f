// Calls to any cell of a fleet, from outside of its nodes: every node serves every cell, so any live one will do.

import { type Duplex, Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { abortTarget } from "./abort-target.ts";
import { attemptCall } from "./call-attempts.ts";
import { type CellAddress, currentScript, type ResolvedCell, resolveCell } from "./cell-address.ts";
import { formatAddress } from "./connection.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { signRequest } from "./core/sign.ts";
import { tunnelVersion } from "./core/tunnel-names.ts";
import { PeerError, RpcFailure, StaleOwnerError, TunnelLostError } from "./errors.ts";
import { exchange } from "./exchange.ts";
import type { FleetStore } from "./fleet-store.ts";
import { handshake, webSocketKey } from "./handshake.ts";
import { answerHeaders, checkVersion, type InnerTarget, innerHeaders, isStale } from "./inner-request.ts";
import { LapsedPeers } from "./lapsed-peers.ts";
import { NodeDirectory } from "./node-directory.ts";
import { type PeerConnection, type PeerRejection, takeSocket } from "./peer-connection.ts";
import { PeerSocket } from "./peer-socket.ts";
import { nonce, requestIds } from "./random-ids.ts";
import { sentBody } from "./sent-body.ts";
import { type Peer, TunnelPool, type TunnelPoolOptions } from "./tunnel-pool.ts";
import { webBody } from "./web-body.ts";

export interface PeerClientOptions extends TunnelPoolOptions {
  /** The fleet's bucket: where its nodes are found. */
  store: FleetStore;
  /** Name of the script whose cells are called. @default that of `deploy/current.json`, read once */
  script?: string;
  /** Shared with others who look for nodes. @default one of its own */
  directory?: NodeDirectory;
  /** How long a call looks for an owner when nodes say that they are none. @default 15000 */
  deadlineMs?: number;
  /** How often it is looked whether a node that is being called still lives. @default 1000 */
  lapseCheckMs?: number;
}

const nullBodyStatus: ReadonlySet<number> = new Set([204, 205, 304]);
const defaultDeadlineMs = 15_000;
const defaultLapseCheckMs = 1_000;
/** The directory's answer may be this old: with the look each second, a lapsed node is cut within two. */
const directoryCacheMs = 500;
/** What a cancellation may take: nobody waits for it. */
const cancelBounds = { connectTimeoutMs: 1_000, totalTimeoutMs: 2_000, maxAnswerBytes: 4_096 };

/** Calls cells of a fleet. A call is made again only when it is proven that no handler ran. */
export class PeerClient implements AsyncDisposable {
  readonly #options: PeerClientOptions;
  readonly #directory: NodeDirectory;
  readonly #pool: TunnelPool;
  readonly #lapsed: LapsedPeers;
  readonly #sockets = new Map<Duplex, string>();
  readonly #nextId = requestIds();
  #script: Promise<string> | undefined;

  /** @throws PeerOptionError (CELLKIT_PEER_OPTION) */
  constructor(options: PeerClientOptions) {
    this.#options = options;
    const { store, script, clock, directory, lapseCheckMs = defaultLapseCheckMs } = options;
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
   * is less than 1 MiB and there at once is sent whole, which lets it survive a change of the cell's owner.
   * @throws PeerError; TypeError for what is no request; the signal's reason. Errors of the answer's body mean that the
   *   owner was lost or the caller gave up: whether the handler ran to its end is unknown
   */
  async fetch(cell: CellAddress, input: Request | string | URL, init?: RequestInit): Promise<Response> {
    const request = input instanceof Request && init === undefined ? input : new Request(input, init);
    const { signal } = request;
    const url = new URL(request.url);
    const resolved = await this.#resolve(cell, signal);
    let bodyStarted = false;
    const body = await sentBody(request.body);
    async function* pieces(stream: AsyncIterable<Uint8Array>) {
      bodyStarted = true;
      yield* stream;
    }
    const attempt = async (peer: Peer) => {
      const target: InnerTarget = { ...resolved, requestId: this.#nextId() };
      const answer = await this.#send(peer, target, "do", {
        path: withoutFragment(url),
        method: request.method as Dispatcher.HttpMethod,
        headers: innerHeaders(target, url, request.headers),
        body: "whole" in body ? body.whole : Readable.from(pieces(body.stream)),
        signal,
      });
      return this.#toResponse(answer, request.method);
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
    const body = JSON.stringify(call.args ?? []);
    const attempt = async (peer: Peer) => {
      const target: InnerTarget = { ...resolved, requestId: this.#nextId() };
      const headers = innerHeaders(target, new URL("http://cell/"), [["content-type", "application/json"]]);
      headers.push("x-cells-rpc-method", call.method);
      const answer = await this.#send(peer, target, "rpc", {
        path: "/",
        method: "POST",
        headers,
        body,
        signal: signal ?? null,
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new RpcFailure(text.replace(/^RPC failed: /, "").slice(0, 1024));
      return JSON.parse(text) as unknown;
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
    const { signal } = request;
    const url = new URL(request.url);
    const resolved = await this.#resolve(cell, signal);
    const headers = new Headers(request.headers);
    const key = headers.get("sec-websocket-key") ?? webSocketKey();
    headers.set("sec-websocket-key", key);
    if (!headers.has("sec-websocket-version")) headers.set("sec-websocket-version", "13");
    const attempt = async (peer: Peer): Promise<PeerConnection | PeerRejection> => {
      const target: InnerTarget = { ...resolved, requestId: this.#nextId() };
      this.#lapsed.watch();
      const sent = { path: withoutFragment(url), headers: innerHeaders(target, url, headers) };
      const answer = await handshake(this.#pool.dispatcher(peer, "do"), sent, signal).catch((error) => {
        throw this.#failed(error, peer, target, signal);
      });
      if (answer.kind === "response") {
        const { status: statusCode } = answer;
        await this.#judge(peer, { ...answer, statusCode });
        return { kind: "response", response: this.#toResponse({ ...answer, statusCode }, "GET") };
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

  /** Lets calls be answered, then ends their tunnels; cuts WebSockets. Idempotent. */
  async close(): Promise<void> {
    for (const socket of this.#sockets.keys()) socket.destroy();
    await this.#pool.close();
    this.#lapsed.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
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
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData> {
    this.#lapsed.watch();
    const answer = await this.#pool
      .dispatcher(peer, kind)
      .request(options)
      .catch((error) => {
        throw this.#failed(error, peer, target, options.signal as AbortSignal | undefined);
      });
    const { body } = answer;
    await this.#judge(peer, answer);
    body.once("close", () => {
      if (!body.readableEnded) this.#cancel(peer, target);
    });
    return answer;
  }

  async #judge(
    peer: Peer,
    {
      statusCode,
      headers,
      body,
    }: Pick<Dispatcher.ResponseData, "statusCode" | "headers"> & { body: Readable },
  ): Promise<void> {
    try {
      checkVersion(headers);
      if (isStale(statusCode, headers)) throw new StaleOwnerError(formatAddress(peer.address), "stale route");
    } catch (error) {
      body.on("error", () => undefined).destroy();
      throw error;
    }
  }

  /** The error of a call that got no answer. */
  #failed(error: unknown, peer: Peer, target: InnerTarget, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) {
      this.#cancel(peer, target);
      return signal.reason;
    }
    if (error instanceof PeerError) return error;
    return new TunnelLostError(error instanceof Error ? error.message : "it failed", { cause: error });
  }

  #toResponse(
    {
      statusCode,
      headers,
      body,
    }: Pick<Dispatcher.ResponseData, "statusCode" | "headers"> & { body: Readable },
    method: string,
  ): Response {
    const hasBody = method !== "HEAD" && !nullBodyStatus.has(statusCode);
    if (!hasBody) body.resume();
    return new Response(hasBody ? webBody(body) : null, {
      status: statusCode,
      headers: answerHeaders(headers),
    });
  }

  /** Tells the owner that the caller gave up (spec B5); the tunnel is cut anyway. */
  #cancel({ node, address }: Peer, { scope, requestId }: InnerTarget): void {
    const { self, key, clock = Date.now } = this.#options;
    const target = abortTarget(scope, requestId);
    const headers = signRequest({
      key: keyOf(key),
      version: tunnelVersion,
      method: "POST",
      target,
      source: self,
      destination: node,
      timeMs: clock(),
      nonce: nonce(),
    });
    // Best effort: an owner that cannot be told sees the tunnel go.
    exchange(address, { method: "POST", target, headers }, cancelBounds).catch(() => undefined);
  }

  #cut(node: string): void {
    this.#pool.cut(node);
    for (const [socket, owner] of this.#sockets)
      if (owner === node && socket instanceof PeerSocket) socket.lose();
  }
}

function keyOf(key: FleetKey | (() => FleetKey)): FleetKey {
  return typeof key === "function" ? key() : key;
}

function withoutFragment(url: URL): string {
  return url.hash === "" ? url.href : url.href.slice(0, -url.hash.length);
}
