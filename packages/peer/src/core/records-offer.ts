// How two ends agree on records (docs/protocol/records.md, "Negotiation"). Nobody who does not know the header is
// troubled by it, and nobody who removes it on the way gets a tunnel without records out of two ends that have them.
import type { TunnelKind } from "./tunnel-kind.ts";

/** Carries the offer in an establishment and the acceptance in its 101. */
export const recordsHeader = "x-cellkit-records";

/** The member of `extensions` in a node's record that says: this node takes records, and insists on them. */
export const recordsExtension = "records-1";

/**
 * What a node wants: `off` never has records, and must not advertise them; `offered` has them with every peer that can,
 * and insists with a peer that advertises them; `required` insists with all.
 */
export type RecordsMode = "off" | "offered" | "required";

const offerForm = /^records-1; nonce=([0-9a-f]{32})$/;
const acceptanceForm = /^(records-1; nonce=([0-9a-f]{32})); proof=([0-9a-f]{64})$/;

/** The value of an offer, and of an acceptance without its proof. @param nonce 32 lower-case hex digits, fresh */
export function formatRecordsOffer(nonce: string): string {
  return `${recordsExtension}; nonce=${nonce}`;
}

/** The value of an acceptance. @param proof from `deriveRecordKeys` */
export function formatRecordsAcceptance(nonce: string, proof: string): string {
  return `${formatRecordsOffer(nonce)}; proof=${proof}`;
}

/**
 * Reads an offer. One in another version is no offer to us; one in ours that is malformed is an error, as nobody but an
 * attacker makes one.
 */
export function parseRecordsOffer(value: string | undefined): "none" | "malformed" | "offer" {
  if (value === undefined) return "none";
  if (offerForm.test(value)) return "offer";
  return value.startsWith(`${recordsExtension};`) || value === recordsExtension ? "malformed" : "none";
}

/** An acceptance in its parts, undefined when it is not one. */
export function parseRecordsAcceptance(
  value: string,
): { readonly unproven: string; readonly proof: string } | undefined {
  const [, unproven, , proof] = acceptanceForm.exec(value) ?? [];
  return unproven === undefined || proof === undefined ? undefined : { unproven, proof };
}

/** What a dialler does: offers records or not, and whether it goes on without an acceptance. */
export interface DialRecords {
  readonly offer: boolean;
  /** A 101 without an acceptance is an error then. */
  readonly insist: boolean;
}

/** What a dialler knows before it dials. */
export interface DialRecordsInput {
  readonly mode: RecordsMode;
  readonly kind: TunnelKind;
  /** Whether the peer's node record advertises {@link recordsExtension}. */
  readonly peerHasRecords: boolean;
}

/** What a dialler does; undefined when a tunnel of this kind cannot be had: `cluster` with records off. */
export function dialRecords({ mode, kind, peerHasRecords }: DialRecordsInput): DialRecords | undefined {
  if (mode === "off") return kind === "cluster" ? undefined : { offer: false, insist: false };
  return { offer: true, insist: mode === "required" || kind === "cluster" || peerHasRecords };
}

/** What a listener knows once the signature of an establishment is good. */
export interface ListenRecordsInput {
  readonly mode: RecordsMode;
  readonly kind: TunnelKind;
  readonly offered: boolean;
  /** Whether the one that dials has records: its node record advertises {@link recordsExtension}, or its nonce says so. */
  readonly sourceHasRecords: boolean;
}

/** What a listener does: a tunnel with records, one without, or none. */
export function listenRecords(input: ListenRecordsInput): "records" | "plain" | "refuse" {
  const { mode, kind, offered, sourceHasRecords } = input;
  if (mode === "off") return kind === "cluster" ? "refuse" : "plain";
  if (offered) return "records";
  return mode === "required" || kind === "cluster" || sourceHasRecords ? "refuse" : "plain";
}
