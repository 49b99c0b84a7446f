// Establishing a tunnel, the listener's side: the checks in their order, and the head of the answer.

import { peerHeader } from "./constants.ts";
import { headerValues, singleHeader } from "./header-value.ts";
import { isOfferingNonce } from "./offering-nonce.ts";
import { deriveRecordKeys, type RecordKeys } from "./record-keys.ts";
import { recordTranscript } from "./record-transcript.ts";
import {
  formatRecordsAcceptance,
  formatRecordsOffer,
  listenRecords,
  parseRecordsOffer,
  type RecordsMode,
  recordsHeader,
} from "./records-offer.ts";
import { isTunnelKind, type TunnelKind } from "./tunnel-kind.ts";
import { tunnelKindHeader, tunnelUpgrade, tunnelVersion, tunnelVersionHeader } from "./tunnel-names.ts";
import type { AcceptedEstablishment, ReceivedHead, RequestVerifier } from "./verifier.ts";

/** A tunnel that is refused, ready to be answered; as a peer refusal, but for what is not about the signature. */
export interface TunnelRefusal {
  readonly ok: false;
  readonly status: number;
  readonly message: string;
  /** Whether the answer carries the stale marker. */
  readonly staleOwner: boolean;
}

/** The refusal of a request to the tunnels' path that does not upgrade. */
export const notUpgraded: TunnelRefusal = {
  ok: false,
  status: 400,
  message: "tunnel establishment must upgrade",
  staleOwner: false,
};

/** An establishment whose signature and form are good; {@link acceptEstablishment} decides about records. */
export interface ReceivedEstablishment extends AcceptedEstablishment {
  /** This node. */
  readonly destination: string;
  readonly kind: TunnelKind;
  /** Value of the offer of records, undefined without one. */
  readonly offer: string | undefined;
}

/** What {@link acceptEstablishment} needs to know beyond the request. */
export interface AcceptOptions {
  /** @default "offered" */
  readonly records?: RecordsMode | undefined;
  /** Whether the node record of the source advertises records. */
  readonly sourceHasRecords: boolean;
  /** Fresh; 16 random bytes in 32 lower-case hex digits. */
  readonly recordsNonce: string;
}

/** A tunnel that is open once `answer` is sent. */
export interface OpenedTunnel {
  readonly ok: true;
  /** The head of the 101. */
  readonly answer: Buffer;
  /** Keys of the records in which everything after the head travels; undefined: plain bytes. */
  readonly keys: RecordKeys | undefined;
}

/**
 * Judges an establishment: that it upgrades to a tunnel (before authentication), the signature (of a request
 * without a body), the method, the tunnel's version,
 * its kind, the form of an offer of records.
 *
 * @param verifier of version 5
 * @param nowMs this node's wall clock
 */
export function judgeEstablishment(
  request: ReceivedHead,
  verifier: RequestVerifier,
  nowMs: number,
): ReceivedEstablishment | TunnelRefusal {
  const { headers } = request;
  if (singleHeader(headers, "upgrade") !== tunnelUpgrade) {
    return notUpgraded;
  }
  const verdict = verifier.verifyEstablishment(request, nowMs);
  if (!verdict.ok) return verdict;
  if (request.method !== "GET") return refuse(405, "method not allowed");
  if (singleHeader(headers, tunnelVersionHeader) !== String(tunnelVersion)) {
    return refuse(426, "peer tunnel version is incompatible");
  }
  const kind = singleHeader(headers, tunnelKindHeader);
  if (!isTunnelKind(kind)) return refuse(400, "unknown tunnel kind");
  const offers = headerValues(headers, recordsHeader);
  const [offer] = offers;
  const form = offers.length > 1 ? "malformed" : parseRecordsOffer(offer);
  if (form === "malformed") return refuse(400, "malformed offer of records");
  const destination = singleHeader(headers, peerHeader.destination) ?? "";
  return { ...verdict, destination, kind, offer: form === "offer" ? offer : undefined };
}

/** Decides about records, and opens the tunnel or refuses it. */
export function acceptEstablishment(
  establishment: ReceivedEstablishment,
  { records = "offered", sourceHasRecords, recordsNonce }: AcceptOptions,
): OpenedTunnel | TunnelRefusal {
  const { key, kind, offer } = establishment;
  const offered = offer !== undefined;
  // An offer that the signed nonce tells of and that did not come was taken off on the way.
  const hasRecords = sourceHasRecords || (!offered && isOfferingNonce(key, establishment.nonce));
  const decision = listenRecords({ mode: records, kind, offered, sourceHasRecords: hasRecords });
  if (decision === "refuse") return refuse(403, "peer tunnel must have records");
  if (decision === "plain" || !offered) return { ok: true, answer: answerHead([]), keys: undefined };
  const acceptance = formatRecordsOffer(recordsNonce);
  const keys = deriveRecordKeys({
    key,
    transcript: recordTranscript({ ...establishment, offer, acceptance }),
  });
  const accepted = formatRecordsAcceptance(recordsNonce, keys.proof);
  return { ok: true, answer: answerHead([`${recordsHeader}: ${accepted}`]), keys };
}

function answerHead(more: readonly string[]): Buffer {
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    `Upgrade: ${tunnelUpgrade}`,
    "Connection: upgrade",
    `${tunnelVersionHeader}: ${tunnelVersion}`,
    `${peerHeader.version}: ${tunnelVersion}`,
    ...more,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function refuse(status: number, message: string): TunnelRefusal {
  return { ok: false, status, message, staleOwner: false };
}
