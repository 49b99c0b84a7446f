import { createHash } from "node:crypto";
import { PeerOptionError } from "../errors.ts";
import { canonicalText, isPeerIdentity, isPeerNonce, signedTarget } from "./canonical.ts";
import { emptySha256, type PeerVersion, peerHeader } from "./constants.ts";
import type { FleetKey } from "./fleet-key.ts";

/** The seven headers of a signed request, names in lower case. */
export type PeerHeaders = Readonly<Record<(typeof peerHeader)[keyof typeof peerHeader], string>>;

/** What {@link signRequest} signs. */
export interface RequestToSign {
  /** The first key of the fleet: with two, the one that signs. */
  readonly key: FleetKey;
  readonly version: PeerVersion;
  /** As on the request line; case matters. */
  readonly method: string;
  /** Raw path and query as on the request line: nothing is decoded or normalised. */
  readonly target: string;
  /** All bytes of the body. @default none */
  readonly body?: Uint8Array | undefined;
  /** Identity of the sender: 1 to 128 of `A–Z a–z 0–9 _ - .`. */
  readonly source: string;
  /** Identity of the node that is called: the `node` of its record. */
  readonly destination: string;
  /** The sender's wall clock, milliseconds since the Unix epoch; an unsigned 64-bit integer. */
  readonly timeMs: number | bigint;
  /** 16 random bytes, fresh for every request, in 32 lower-case hex digits. */
  readonly nonce: string;
}

const maxU64 = 2n ** 64n - 1n;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be signed
const unsafe = /[\u0000-\u0020\u007f]/;

/**
 * Signs a request to another node of the fleet. Add the headers to the request and change nothing that they cover:
 * method, target, body.
 *
 * @throws PeerOptionError CELLKIT_PEER_OPTION when a field cannot be sent: white space in method or target, an
 *   identity, time or nonce of the wrong form
 */
export function signRequest(request: RequestToSign): PeerHeaders {
  const timestamp = String(request.timeMs);
  refuseUnsignable(request);
  const { body } = request;
  const bodySha256 = body === undefined || body.length === 0 ? emptySha256 : sha256Hex(body);
  const text = canonicalText({
    version: request.version,
    method: request.method,
    target: signedTarget(request.target),
    bodySha256,
    source: request.source,
    destination: request.destination,
    timestamp,
    nonce: request.nonce,
  });
  return {
    [peerHeader.version]: String(request.version),
    [peerHeader.source]: request.source,
    [peerHeader.destination]: request.destination,
    [peerHeader.timestamp]: timestamp,
    [peerHeader.nonce]: request.nonce,
    [peerHeader.bodySha256]: bodySha256,
    [peerHeader.signature]: request.key.macHex(text),
  };
}

/** SHA-256 of bytes in lower-case hex digits. */
export function sha256Hex(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function refuseUnsignable({ method, target, source, destination, timeMs, nonce }: RequestToSign): void {
  if (method === "" || unsafe.test(method))
    throw new PeerOptionError("method", "is empty or has white space");
  if (target === "" || unsafe.test(target))
    throw new PeerOptionError("target", "is empty or has white space");
  if (!isPeerIdentity(source)) throw new PeerOptionError("source", "is not 1 to 128 of A-Z a-z 0-9 _ - .");
  if (!isPeerIdentity(destination)) {
    throw new PeerOptionError("destination", "is not 1 to 128 of A-Z a-z 0-9 _ - .");
  }
  const isWhole =
    typeof timeMs === "bigint" ? timeMs >= 0n && timeMs <= maxU64 : Number.isSafeInteger(timeMs);
  if (!isWhole || timeMs < 0) throw new PeerOptionError("timeMs", `is ${timeMs}: no unsigned 64-bit integer`);
  if (!isPeerNonce(nonce)) throw new PeerOptionError("nonce", "is not 32 lower-case hex digits");
}
