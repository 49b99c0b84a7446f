// The receiver's side of a signed request: the checks of docs/protocol/signed-requests.md, in
// its order; the first that fails answers.
import { timingSafeEqual } from "node:crypto";
import { PeerOptionError } from "../errors.ts";
import { canonicalText, isPeerIdentity, isPeerNonce, isSha256Hex, signedTarget } from "./canonical.ts";
import {
  defaultReplayCapacity,
  defaultWindowMs,
  emptySha256,
  type PeerVersion,
  retentionWindows,
} from "./constants.ts";
import type { FleetKey } from "./fleet-key.ts";
import { declaresBody } from "./header-value.ts";
import { OpenHeads } from "./open-heads.ts";
import { type PeerRefusal, type PeerRefusalError, refusal } from "./refusal.ts";
import { ReplayCache } from "./replay-cache.ts";
import { sha256Hex } from "./sign.ts";
import { type HeaderPairs, isVisibleAscii, parseTimestamp, readSignedHead } from "./signed-head.ts";

/** How a {@link RequestVerifier} judges. */
export interface RequestVerifierOptions {
  /**
   * The keys that may have signed, at most a few; the first is the one that this node signs with. A function is asked
   * for each request, so that a rotation swaps the list.
   */
  readonly keys: readonly FleetKey[] | (() => readonly FleetKey[]);
  /** The one version that is accepted. */
  readonly version: PeerVersion;
  /** This node's identity: what a request's target must name. */
  readonly self: string;
  /** How far the sender's clock may be off, both ways, inclusive. @default 30_000 */
  readonly windowMs?: number | undefined;
  /** How many nonces are remembered, each for two windows; 40 bytes each. @default 1_000_000 */
  readonly replayCapacity?: number | undefined;
  /**
   * Requests stamped before this time are refused: the start of the process, when its node name is fixed, so that what
   * a process of the same name accepted cannot be played to its successor. Leave it out when the name is fresh with each
   * start: old requests name another node then, and clocks that are behind do no harm. @default none
   */
  readonly notBeforeMs?: number | undefined;
}

/** A signed request as received, before its body. */
export interface ReceivedHead {
  readonly method: string;
  /** The raw request target, in origin or absolute form. Bytes beyond ASCII decoded as UTF-8. */
  readonly target: string;
  readonly headers: HeaderPairs;
}

/** A signed request as received, with its whole body. */
export interface ReceivedRequest extends ReceivedHead {
  /** @default no body */
  readonly body?: Uint8Array | undefined;
}

/** A request that was signed by a holder of the fleet key, for this node, just now, for the first time. */
export interface Accepted {
  readonly ok: true;
  /** Identity that the sender gave itself; every holder of the key can give itself any. */
  readonly source: string;
}

/** A head that passed; the request counts once {@link commit} says so. */
export interface AcceptedHead extends Accepted {
  /** What the body must hash to. */
  readonly bodySha256: string;
  /** To be called once, with the SHA-256 (lower-case hex) of the body that was read. */
  commit(actualSha256: string): { readonly ok: true } | PeerRefusal;
}

/** An accepted request without a body, with what the keys of a tunnel's records are derived from. */
export interface AcceptedEstablishment extends Accepted {
  /** The key that signed. */
  readonly key: FleetKey;
  readonly timestamp: string;
  readonly nonce: string;
}

/** The fields of a head that passed the checks of form and time (1 to 7). */
interface Fields {
  readonly source: string;
  readonly destination: string;
  readonly timestamp: string;
  readonly stampMs: number;
  readonly nonce: string;
  readonly bodySha256: string | undefined;
  readonly signature: string | undefined;
}

/** Judges signed requests to this node, and remembers their nonces. One per listener and version. */
export class RequestVerifier {
  readonly #keys: () => readonly FleetKey[];
  readonly #version: PeerVersion;
  readonly #self: string;
  readonly #windowMs: number;
  readonly #notBeforeMs: number;
  readonly #capacity: number;
  readonly #cache: ReplayCache;
  readonly #open: OpenHeads;
  #lastNowMs = 0;

  /** @throws PeerOptionError CELLKIT_PEER_OPTION for no key, an impossible identity, or a number out of range */
  constructor(options: RequestVerifierOptions) {
    const { keys, self, windowMs = defaultWindowMs, replayCapacity = defaultReplayCapacity } = options;
    if (typeof keys !== "function" && keys.length === 0) throw new PeerOptionError("keys", "is empty");
    if (!isPeerIdentity(self)) throw new PeerOptionError("self", "is not 1 to 128 of A-Z a-z 0-9 _ - .");
    if (!(windowMs > 0)) throw new PeerOptionError("windowMs", `is ${windowMs}: must be above 0`);
    if (!Number.isSafeInteger(replayCapacity) || replayCapacity < 1) {
      throw new PeerOptionError("replayCapacity", `is ${replayCapacity}: must be a whole number from 1`);
    }
    this.#keys = typeof keys === "function" ? keys : () => keys;
    this.#version = options.version;
    this.#self = self;
    this.#windowMs = windowMs;
    this.#notBeforeMs = options.notBeforeMs ?? Number.NEGATIVE_INFINITY;
    this.#capacity = replayCapacity;
    this.#cache = new ReplayCache(replayCapacity, windowMs * retentionWindows);
    this.#open = new OpenHeads(windowMs * retentionWindows);
  }

  /** All checks, for a request whose body was read. @param nowMs this node's wall clock */
  verify(request: ReceivedRequest, nowMs: number): Accepted | PeerRefusal {
    const { body } = request;
    const verdict = this.#verifyWhole(request, nowMs, () =>
      body === undefined || body.length === 0 ? emptySha256 : sha256Hex(body),
    );
    return verdict.ok ? { ok: true, source: verdict.source } : verdict;
  }

  /** All checks, for a tunnel's establishment: a request that has no body. @param nowMs this node's wall clock */
  verifyEstablishment(request: ReceivedHead, nowMs: number): AcceptedEstablishment | PeerRefusal {
    return this.#verifyWhole(request, nowMs, () => (declaresBody(request.headers) ? undefined : emptySha256));
  }

  /**
   * The checks that need no body, before it is read. A body that the hash of an empty one rules out is refused here, and
   * so is the ninth head of one nonce. Nothing is remembered until {@link AcceptedHead.commit}; a head that is given up
   * costs nothing.
   *
   * @param nowMs this node's wall clock
   */
  verifyHead(request: ReceivedHead, nowMs: number): AcceptedHead | PeerRefusal {
    const target = signedTarget(request.target);
    this.#lastNowMs = nowMs;
    const fields = this.#checkFields(request, nowMs);
    if (typeof fields === "string") return refusal(fields, target);
    const { bodySha256, nonce } = fields;
    if (bodySha256 === undefined || !isSha256Hex(bodySha256)) return refusal("unauthorized", target);
    if (bodySha256 === emptySha256 && declaresBody(request.headers)) return refusal("unauthorized", target);
    const signed = this.#checkSignature(request.method, target, fields, bodySha256);
    if (typeof signed === "string") return refusal(signed, target);
    const replayed = this.#checkReplay(nonce, nowMs);
    if (replayed !== undefined) return refusal(replayed, target);

    const ticket = this.#open.open(nonce, nowMs, fields.stampMs);
    if (ticket === undefined) return refusal("replay", target);
    const commit = (actualSha256: string): { readonly ok: true } | PeerRefusal => {
      if (!sameText(actualSha256, bodySha256)) return refusal("unauthorized", target);
      if (ticket.used) return refusal("replay", target);
      const state = this.#cache.check(nonce, this.#lastNowMs);
      if (state !== "fresh") return refusal(state === "seen" ? "replay" : "replay-capacity", target);
      // The ticket may lie in no table any more, and copies of the head may still hold it.
      ticket.used = true;
      // As of now, so that the memory stays in the order of its times.
      this.#remember(fields, Math.max(nowMs, this.#lastNowMs));
      return { ok: true };
    };
    return { ok: true, source: fields.source, bodySha256, commit };
  }

  #verifyWhole(
    request: ReceivedHead,
    nowMs: number,
    hashBody: () => string | undefined,
  ): AcceptedEstablishment | PeerRefusal {
    const target = signedTarget(request.target);
    this.#lastNowMs = nowMs;
    const fields = this.#checkFields(request, nowMs);
    if (typeof fields === "string") return refusal(fields, target);
    const bodySha256 = hashBody();
    if (bodySha256 === undefined || fields.bodySha256 !== bodySha256) return refusal("unauthorized", target);
    const key = this.#checkSignature(request.method, target, fields, bodySha256);
    if (typeof key === "string") return refusal(key, target);
    const replayed = this.#checkReplay(fields.nonce, nowMs);
    if (replayed !== undefined) return refusal(replayed, target);
    this.#remember(fields, nowMs);
    return { ok: true, source: fields.source, key, timestamp: fields.timestamp, nonce: fields.nonce };
  }

  /** Checks 1 to 7: version, identities, time, form of the nonce. */
  #checkFields({ headers }: ReceivedHead, nowMs: number): Fields | PeerRefusalError {
    const head = readSignedHead(headers);
    const { version, source, destination, timestamp, nonce } = head;
    if (version === undefined || !isVisibleAscii(version)) return "unauthorized";
    if (version !== String(this.#version)) return "incompatible-version";
    if (source === undefined || destination === undefined) return "unauthorized";
    if (!isPeerIdentity(source) || !isPeerIdentity(destination)) return "unauthorized";
    const stampMs = parseTimestamp(timestamp);
    if (timestamp === undefined || stampMs === undefined) return "unauthorized";
    if (!(Math.abs(nowMs - stampMs) <= this.#windowMs)) return "unauthorized";
    if (stampMs < this.#notBeforeMs || stampMs <= this.#cache.floorMs) return "unauthorized";
    if (stampMs <= this.#open.floorMs) return "unauthorized";
    if (nonce === undefined || !isPeerNonce(nonce)) return "unauthorized";
    const { bodySha256, signature } = head;
    return { source, destination, timestamp, stampMs, nonce, bodySha256, signature };
  }

  /** Checks 9 to 11: the signature, then whom the request is for. The answer is the key that signed. */
  #checkSignature(
    method: string,
    target: string,
    fields: Fields,
    bodySha256: string,
  ): FleetKey | PeerRefusalError {
    const { signature } = fields;
    if (signature === undefined || !isSha256Hex(signature)) return "unauthorized";
    // A line feed in one field could make one signed text mean two requests; no HTTP parser lets one through.
    if (method.includes("\n") || target.includes("\n")) return "unauthorized";
    const text = canonicalText({
      version: this.#version,
      method,
      target,
      bodySha256,
      source: fields.source,
      destination: fields.destination,
      timestamp: fields.timestamp,
      nonce: fields.nonce,
    });
    const given = Buffer.from(signature, "hex");
    const key = this.#keys().find((candidate) => timingSafeEqual(candidate.mac(text), given));
    if (key === undefined) return "unauthorized";
    return fields.destination === this.#self ? key : "wrong-target";
  }

  /** Checks 12 and 13; heads whose body is still to come count within the capacity. */
  #checkReplay(nonce: string, nowMs: number): PeerRefusalError | undefined {
    const state = this.#cache.check(nonce, nowMs);
    if (state === "seen") return "replay";
    if (state === "full") return "replay-capacity";
    if (this.#cache.count + this.#open.count < this.#capacity) return undefined;
    this.#open.sweep(nowMs);
    this.#cache.reclaim(nowMs);
    return this.#cache.count + this.#open.count < this.#capacity ? undefined : "replay-capacity";
  }

  /** Check 14. */
  #remember({ nonce, stampMs }: Fields, nowMs: number): void {
    this.#open.close(nonce);
    this.#cache.add(nonce, nowMs, stampMs);
  }
}

/** Whether two texts are the same, in a time that depends on their lengths only. */
function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
