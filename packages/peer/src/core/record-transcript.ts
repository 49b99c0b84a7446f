import type { TunnelKind } from "./tunnel-kind.ts";
import { tunnelPath, tunnelVersion } from "./tunnel-names.ts";

/** What both ends must have seen alike for their keys to be the same. */
export interface TranscriptFields {
  readonly source: string;
  readonly destination: string;
  /** Of the signed request, in digits. */
  readonly timestamp: string;
  /** Of the signed request. */
  readonly nonce: string;
  readonly kind: TunnelKind;
  /** Value of the offer as on the wire. */
  readonly offer: string;
  /** Value of the acceptance as on the wire, without its proof. */
  readonly acceptance: string;
}

const domain = "cellkit-records-1";

/** The text whose hash salts the keys: docs/protocol/records.md, "Transcript". No field can hold a line feed. */
export function recordTranscript(fields: TranscriptFields): string {
  return [
    domain,
    tunnelVersion,
    "GET",
    tunnelPath,
    fields.source,
    fields.destination,
    fields.timestamp,
    fields.nonce,
    fields.kind,
    tunnelVersion,
    fields.offer,
    fields.acceptance,
  ].join("\n");
}
