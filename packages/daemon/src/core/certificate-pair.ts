// What can be said of a certificate and its key without asking a file or a clock.

/** A certificate and a key that belong together, and who may sign those of clients. */
export interface CertificatePair {
  /** PEM: the server's certificate, then those that lead to its CA. */
  readonly cert: Buffer;
  /** PEM. A secret: never log it. */
  readonly key: Buffer;
  /** PEM: whose certificates clients must have; undefined asks clients for none. */
  readonly clientCa: Buffer | undefined;
  /** Milliseconds since the epoch. */
  readonly validFromMs: number;
  /** Milliseconds since the epoch. */
  readonly validToMs: number;
  /** The names and addresses that the server's certificate is for, as OpenSSL writes them; undefined where it has none. */
  readonly names: string | undefined;
  /** SHA-256 of the server's certificate, in hexadecimal with colons. */
  readonly fingerprint: string;
}

/** Where a moment lies in a certificate's time. */
export type CertificateAge = "early" | "good" | "ending" | "expired";

/** How long before its end a certificate is ending: two weeks, time enough to find out why nothing renewed it. */
const endingMs = 14 * 86_400_000;

/** Where `nowMs` lies in a certificate's time; `ending` are its last two weeks, in which it is still good. */
export function certificateAge(
  { validFromMs, validToMs }: Pick<CertificatePair, "validFromMs" | "validToMs">,
  nowMs: number,
): CertificateAge {
  if (nowMs >= validToMs) return "expired";
  if (nowMs < validFromMs) return "early";
  return validToMs - nowMs < endingMs ? "ending" : "good";
}

/** Whether both hold the same bytes. */
export function isSamePair(a: CertificatePair, b: CertificatePair): boolean {
  const hasSameCa =
    a.clientCa === undefined || b.clientCa === undefined
      ? a.clientCa === b.clientCa
      : a.clientCa.equals(b.clientCa);
  return hasSameCa && a.cert.equals(b.cert) && a.key.equals(b.key);
}
