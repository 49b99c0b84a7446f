// The listening end of tunnels: judges establishments, agrees on records, and hands what comes inside to the handlers.
// It is no server of its own: it is mounted on the node:http server of the daemon, beside the daemon's other routes.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { parseAbortTarget } from "./abort-target.ts";
import { type CallHandlers, CallServer } from "./call-server.ts";
import { signedTarget } from "./core/canonical.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { RecordOpener, RecordSealer } from "./core/record-layer.ts";
import type { RecordsMode } from "./core/records-offer.ts";
import { acceptEstablishment, judgeEstablishment, notUpgraded } from "./core/tunnel-accept.ts";
import type { TunnelKind } from "./core/tunnel-kind.ts";
import { tunnelPath } from "./core/tunnel-names.ts";
import { RequestVerifier } from "./core/verifier.ts";
import { PeerOptionError } from "./errors.ts";
import { guardHeads, type HeadGuardOptions } from "./head-guard.ts";
import { answerRequest, type PeerAnswer, refuseUpgrade } from "./peer-answer.ts";
import { nonce } from "./random-ids.ts";
import { readControlBody, receivedHead, verifyRequest } from "./received-head.ts";
import { RecordStream } from "./record-stream.ts";
import { runHandler, warnOf } from "./run-handler.ts";
import { abortPrefix, maxCallBodyBytes } from "./wire.ts";

/** What a raw tunnel is. */
export interface TunnelOrigin {
  readonly kind: TunnelKind;
  /** Identity of the dialling node. With one key for all, a node may claim to be another: this is no proof. */
  readonly source: string;
  readonly recorded: boolean;
}

export interface PeerListenerOptions extends CallHandlers, HeadGuardOptions {
  /** This node's identity: 1 to 128 of `A–Z a–z 0–9 _ - .`. */
  self: string;
  /** Keys that peers may sign with; a function is asked for each establishment, so that a rotation swaps them. */
  keys: readonly FleetKey[] | (() => readonly FleetKey[]);
  /**
   * `off` never, `offered` when the peer offers them (and always with a peer that is known to have them), `required`
   * always. Tunnels of kind `cluster` have records in any case; with `off` there are none. @default "offered"
   */
  records?: RecordsMode;
  /** Whether the node of this identity advertises records: then an establishment without an offer is refused. */
  sourceHasRecords?: (source: string) => boolean | Promise<boolean>;
  /**
   * Takes the bytes of a tunnel of kind `cluster`; without it that kind is refused. The tunnel's errors are its taker's:
   * a stream whose `error` event has no listener ends the process. A throw or a rejection cuts the tunnel, and is a warning
   * of the process.
   */
  onCluster?: (tunnel: Duplex, origin: TunnelOrigin) => void | Promise<void>;
  /** Same for kinds `do` and `rpc`, instead of the handlers: plain HTTP/1.1 for another server. */
  onTunnel?: (tunnel: Duplex, origin: TunnelOrigin) => void | Promise<void>;
  /** Shared with the daemon's other signed routes, so that they share the memory of nonces. @default one of its own */
  verifier?: RequestVerifier;
  /**
   * For its own verifier: what was signed before this time is refused, milliseconds since the Unix epoch. A node whose
   * name stays the same over restarts gives the start of its process; otherwise what a former process accepted can be
   * played to the next. @default none
   */
  notBeforeMs?: number;
  /** Tunnels at the same time, WebSockets and raw ones included; one more is refused with 503. @default 10000 */
  maxTunnelCount?: number;
  /** Most bytes of a call's body, exact to the byte; more gets 413. @default 1 GiB + 1 MiB */
  maxBodyBytes?: number;
  /** How long a tunnel may be without a call: until the whole head of its first one, and between two. @default 30000 */
  tunnelIdleMs?: number;
  /** This node's wall clock, milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
}

/** What is open at this instant. */
export interface PeerListenerCounts {
  /** Tunnels of kind `do` and `rpc`, idle ones included. */
  tunnels: number;
  /** Calls being answered. */
  calls: number;
  /** WebSockets inside tunnels. */
  sockets: number;
  /** Tunnels whose bytes went to `onCluster` or `onTunnel`. */
  raw: number;
  /** Connections without a complete head, on servers given to `attach`. */
  halfOpen: number;
}

export interface PeerListener {
  /** Judges the nonces and signatures here; for the daemon's other signed routes. */
  readonly verifier: RequestVerifier;
  /** Takes an upgrade if it is to `/peer/tunnel`. @returns false when it is not: nothing was done */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  /** Takes a request if it is a cancellation (`/peer/abort/…`). @returns false when it is not: nothing was done */
  request(request: IncomingMessage, response: ServerResponse): boolean;
  /** Serves both on a server that has nothing else (others get 404), and bounds its heads with {@link guardHeads}. */
  attach(server: Server): void;
  counts(): PeerListenerCounts;
  /** Refuses establishments, ends idle tunnels, lets running calls be answered; resolves when none is left. Idempotent. */
  close(): Promise<void>;
  /** Cuts every tunnel, raw ones and those that are being established too. */
  destroy(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @throws PeerOptionError (CELLKIT_PEER_OPTION) for an identity, number or list of keys that cannot be */
export function peerListener(options: PeerListenerOptions): PeerListener {
  return new TunnelListener(options);
}

/** Probes of the kernel find peers that vanished without a FIN. */
const keepAliveProbeMs = 30_000;

const shuttingDown: PeerAnswer = { status: 503, message: "shutting down" };

class TunnelListener implements PeerListener {
  readonly verifier: RequestVerifier;
  readonly #options: PeerListenerOptions;
  readonly #records: RecordsMode;
  readonly #clock: () => number;
  readonly #calls: CallServer;
  readonly #raw = new Set<Duplex>();
  /** Connections whose establishment is being judged. */
  readonly #pending = new Set<Duplex>();
  readonly #maxTunnels: number;
  readonly #guards: { halfOpenCount: number; close(): void }[] = [];
  #closed: Promise<void> | undefined;

  constructor(options: PeerListenerOptions) {
    const { keys, self, records = "offered", clock = Date.now, verifier, notBeforeMs } = options;
    const { maxTunnelCount = 10_000 } = options;
    if (verifier !== undefined && notBeforeMs !== undefined)
      throw new PeerOptionError("notBeforeMs", "is the verifier's matter when there is one");
    if (!Number.isSafeInteger(maxTunnelCount) || maxTunnelCount < 1)
      throw new PeerOptionError("maxTunnelCount", `is ${maxTunnelCount}: must be a whole number from 1`);
    this.#options = options;
    this.#maxTunnels = maxTunnelCount;
    this.#records = records;
    this.#clock = clock;
    this.verifier = verifier ?? new RequestVerifier({ keys, self, version: 5, notBeforeMs });
    this.#calls = new CallServer(options, {
      maxBodyBytes: options.maxBodyBytes ?? maxCallBodyBytes,
      tunnelIdleMs: options.tunnelIdleMs ?? 30_000,
    });
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    if (signedTarget(request.url ?? "") !== tunnelPath) return false;
    // Until somebody else owns the connection, its failure means nothing here.
    const ignore = () => undefined;
    socket.on("error", ignore);
    this.#pending.add(socket);
    const judged = this.#establish(request, socket as Socket, head).finally(() =>
      this.#pending.delete(socket),
    );
    judged.then(
      (refusal) => {
        if (refusal !== undefined) refuseUpgrade(socket, refusal, this.#clock());
        else socket.off("error", ignore);
      },
      () => socket.destroy(),
    );
    return true;
  }

  request(request: IncomingMessage, response: ServerResponse): boolean {
    if (!signedTarget(request.url ?? "").startsWith(abortPrefix)) return false;
    this.#cancel(request).then(
      (answer) => answerRequest(response, answer, this.#clock()),
      () => response.destroy(),
    );
    return true;
  }

  attach(server: Server): void {
    server.on("upgrade", (request, socket, head) => {
      if (!this.upgrade(request, socket, head)) {
        socket.on("error", () => undefined);
        refuseUpgrade(socket, { status: 404, message: "not found" }, this.#clock());
      }
    });
    server.on("request", (request, response) => {
      if (this.request(request, response)) return;
      const isTunnel = signedTarget(request.url ?? "") === tunnelPath;
      const refused = isTunnel ? notUpgraded : { status: 404, message: "not found" };
      answerRequest(response, refused, this.#clock());
    });
    this.#guards.push(guardHeads(server, this.#options));
  }

  counts(): PeerListenerCounts {
    return {
      tunnels: this.#calls.tunnelCount,
      calls: this.#calls.callCount,
      sockets: this.#calls.socketCount,
      raw: this.#raw.size,
      halfOpen: this.#guards.reduce((sum, guard) => sum + guard.halfOpenCount, 0),
    };
  }

  close(): Promise<void> {
    this.#closed ??= this.#calls.close();
    return this.#closed;
  }

  destroy(): void {
    this.#closed ??= this.#calls.close();
    this.#calls.destroy();
    for (const tunnel of [...this.#raw, ...this.#pending]) tunnel.destroy();
    for (const guard of this.#guards) guard.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Opens the tunnel, or answers what to refuse it with. */
  async #establish(request: IncomingMessage, socket: Socket, head: Buffer): Promise<PeerAnswer | undefined> {
    if (this.#closed !== undefined) return shuttingDown;
    const received = judgeEstablishment(receivedHead(request), this.verifier, this.#clock());
    if (!("kind" in received)) return received;
    const { kind, source, offer } = received;
    if (kind === "cluster" && this.#options.onCluster === undefined) {
      return { status: 400, message: "unknown tunnel kind" };
    }
    if (this.#calls.tunnelCount + this.#raw.size + this.#pending.size > this.#maxTunnels)
      return { status: 503, message: "too many tunnels" };
    // Bytes behind the head that are in the clear could only be an attacker's: the keys are made after it.
    if (offer !== undefined && head.length > 0) return { status: 400, message: "bytes before records" };
    const isAsked = offer === undefined && this.#records === "offered";
    const sourceHasRecords = isAsked && ((await this.#options.sourceHasRecords?.(source)) ?? false);
    if (this.#closed !== undefined) return shuttingDown;
    const opened = acceptEstablishment(received, {
      records: this.#records,
      sourceHasRecords,
      recordsNonce: nonce(),
    });
    if (!opened.ok) return opened;
    if (socket.destroyed) return undefined;
    socket.setTimeout(0);
    socket.setKeepAlive(true, keepAliveProbeMs);
    socket.write(opened.answer);
    const { keys } = opened;
    if (keys === undefined && head.length > 0) socket.unshift(head);
    const tunnel =
      keys === undefined
        ? socket
        : new RecordStream(socket, {
            sealer: new RecordSealer(keys.listener),
            opener: new RecordOpener(keys.dialler),
          });
    this.#serve(tunnel, { kind, source, recorded: keys !== undefined });
    return undefined;
  }

  #serve(tunnel: Duplex, origin: TunnelOrigin): void {
    const { kind, source, recorded } = origin;
    const take = kind === "cluster" ? this.#options.onCluster : this.#options.onTunnel;
    if (take !== undefined) {
      this.#raw.add(tunnel);
      tunnel.once("close", () => this.#raw.delete(tunnel));
      runHandler(
        () => take(tunnel, origin),
        (error) => {
          warnOf(error);
          tunnel.destroy();
        },
      );
    } else if (kind !== "cluster") this.#calls.serve(tunnel, { kind, source, recorded });
  }

  async #cancel(request: IncomingMessage): Promise<PeerAnswer> {
    const { headTimeoutMs } = this.#options;
    const verdict = await verifyRequest(request, () => readControlBody(request, headTimeoutMs), {
      verifier: this.verifier,
      nowMs: this.#clock(),
    });
    if (!verdict.ok) return verdict;
    if (request.method !== "POST") return { status: 405, message: "method not allowed" };
    const cancelled = parseAbortTarget(signedTarget(request.url ?? ""));
    if (typeof cancelled === "string") return { status: 400, message: cancelled };
    this.#calls.cancel(cancelled.scope, cancelled.requestId);
    return { status: 204, message: "" };
  }
}
