// Establishing a tunnel, the dialler's side: the request to send, and what the answer means.
import { timingSafeEqual } from "node:crypto";
import { PeerOptionError, TunnelHeadError } from "../errors.ts";
import type { AnswerHead } from "./answer-head.ts";
import { peerHeader } from "./constants.ts";
import type { FleetKey } from "./fleet-key.ts";
import { headerValues, singleHeader } from "./header-value.ts";
import { deriveRecordKeys, type RecordKeys } from "./record-keys.ts";
import { recordTranscript } from "./record-transcript.ts";
import { formatRecordsOffer, parseRecordsAcceptance, recordsHeader } from "./records-offer.ts";
import { signRequest } from "./sign.ts";
import type { TunnelKind } from "./tunnel-kind.ts";
import {
  routeErrorHeader,
  staleOwnerMarker,
  tunnelKindHeader,
  tunnelPath,
  tunnelUpgrade,
  tunnelVersion,
  tunnelVersionHeader,
} from "./tunnel-names.ts";

/** What a dialler asks for. */
export interface Establishment {
  readonly key: FleetKey;
  /** Value of the Host header: `host:port` of the peer. */
  readonly host: string;
  readonly source: string;
  readonly destination: string;
  /** The dialler's wall clock, milliseconds since the Unix epoch. */
  readonly timeMs: number;
  /** Fresh; 16 random bytes in 32 lower-case hex digits, or, with an offer of records, `offeringNonce`. */
  readonly nonce: string;
  readonly kind: TunnelKind;
  /** Offers records: fresh, another 16 random bytes in 32 lower-case hex digits. @default no offer */
  readonly recordsNonce?: string | undefined;
}

const hostForm = /^[A-Za-z0-9_.:[\]%-]{1,512}$/;
const nonceForm = /^[0-9a-f]{32}$/;

/**
 * The bytes that a dialler sends.
 *
 * @throws PeerOptionError CELLKIT_PEER_OPTION for fields that cannot be signed or sent
 */
export function establishmentRequest(establishment: Establishment): Buffer {
  const { host, kind, recordsNonce } = establishment;
  if (!hostForm.test(host)) throw new PeerOptionError("host", "is not host:port");
  const lines = [
    `GET ${tunnelPath} HTTP/1.1`,
    `Host: ${host}`,
    `Upgrade: ${tunnelUpgrade}`,
    "Connection: upgrade",
    `${tunnelVersionHeader}: ${tunnelVersion}`,
    `${tunnelKindHeader}: ${kind}`,
  ];
  const signed = signRequest({ ...establishment, version: tunnelVersion, method: "GET", target: tunnelPath });
  for (const [name, value] of Object.entries(signed)) lines.push(`${name}: ${value}`);
  if (recordsNonce !== undefined) {
    if (!nonceForm.test(recordsNonce))
      throw new PeerOptionError("recordsNonce", "is not 32 lower-case hex digits");
    lines.push(`${recordsHeader}: ${formatRecordsOffer(recordsNonce)}`);
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** What an answer means. Only `open` has a tunnel behind it, and only `stale` proves that nothing ran. */
export type TunnelAnswer =
  | { readonly outcome: "open"; readonly keys: RecordKeys | undefined }
  /** Not a peer of our version: the text it sent, undefined when it sent none. */
  | { readonly outcome: "incompatible"; readonly version: string | undefined }
  /** The node is not the one that was called, or not the owner: look it up again. */
  | { readonly outcome: "stale" }
  | { readonly outcome: "refused"; readonly status: number }
  /** Records were insisted on, and the peer, or somebody on the way, opened a tunnel without. */
  | { readonly outcome: "without-records" };

/**
 * Judges the answer to an establishment: the version first, then the stale marker, then the status, then the records.
 *
 * @param options.insist whether the tunnel must have records (see `dialRecords`)
 * @throws TunnelHeadError CELLKIT_PEER_TUNNEL_HEAD for an acceptance that was not asked for, is malformed, or has a
 *   wrong proof: somebody on the way changed the handshake, or the peer signs with another key
 */
export function judgeTunnelAnswer(
  head: AnswerHead,
  establishment: Establishment,
  { insist }: { readonly insist: boolean },
): TunnelAnswer {
  const version = singleHeader(head.headers, peerHeader.version);
  if (version !== String(tunnelVersion)) return { outcome: "incompatible", version };
  if (head.status === 409 && headerValues(head.headers, routeErrorHeader).includes(staleOwnerMarker)) {
    return { outcome: "stale" };
  }
  if (head.status !== 101) return { outcome: "refused", status: head.status };
  const values = headerValues(head.headers, recordsHeader);
  if (values.length === 0)
    return insist ? { outcome: "without-records" } : { outcome: "open", keys: undefined };
  return { outcome: "open", keys: acceptedKeys(values, establishment) };
}

function acceptedKeys(values: readonly string[], establishment: Establishment): RecordKeys {
  const { recordsNonce, key, timeMs } = establishment;
  if (recordsNonce === undefined) throw new TunnelHeadError("records were accepted that were not offered");
  const [value = ""] = values;
  const accepted = values.length === 1 ? parseRecordsAcceptance(value) : undefined;
  if (accepted === undefined) throw new TunnelHeadError("the acceptance of records is malformed");
  const keys = deriveRecordKeys({
    key,
    transcript: recordTranscript({
      ...establishment,
      timestamp: String(timeMs),
      offer: formatRecordsOffer(recordsNonce),
      acceptance: accepted.unproven,
    }),
  });
  if (!timingSafeEqual(Buffer.from(accepted.proof, "hex"), Buffer.from(keys.proof, "hex"))) {
    throw new TunnelHeadError("the proof of records is wrong: the handshake was changed on the way");
  }
  return keys;
}
