// The signed probe: an Ed25519 signature (RFC 8032) over the prober's challenge, by the key whose public half is in the
// node's record. It shows that the process that wrote the record answers at the address in it.
import { sign, verify } from "node:crypto";

/** First line of the text that a probed node signs. */
const probeDomain = "cells-peer-probe-v1";

/** Header of the prober's challenge: 32 random bytes in 64 lower-case hex digits. */
export const probeChallengeHeader = "x-cells-probe-challenge";

/** What a probe proves. */
export interface ProbeFields {
  /** The node's identity. */
  readonly node: string;
  /** `host:port` of its internal listener, as in its record. */
  readonly advertise: string;
  /** As sent by the prober: 64 lower-case hex digits. */
  readonly challenge: string;
}

/** What crypto.sign takes: a private key object of type ed25519. */
export type ProbePrivateKey = Extract<
  Parameters<typeof sign>[2],
  { readonly type: unknown; export: unknown }
>;

const challengeForm = /^[0-9a-f]{64}$/;
const publicKeyForm = challengeForm;
const signatureForm = /^[0-9a-f]{128}$/;
/** The DER of an Ed25519 public key before its 32 bytes (RFC 8410 §4). */
const publicKeyPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** Whether a text is a challenge: 64 lower-case hex digits. */
export function isProbeChallenge(text: string): boolean {
  return challengeForm.test(text);
}

/** The text that a probed node signs. */
export function probeText({ node, advertise, challenge }: ProbeFields): string {
  return `${probeDomain}\n${node}\n${advertise}\n${challenge}`;
}

/** The signature of a probe's answer: 128 lower-case hex digits. @param privateKey of type ed25519 */
export function signProbe(fields: ProbeFields, privateKey: ProbePrivateKey): string {
  return sign(null, Buffer.from(probeText(fields)), privateKey).toString("hex");
}

/** Whether the holder of the private half of `publicKeyHex` (64 hex digits, as in a node's record) signed this answer. */
export function verifyProbe(
  answer: ProbeFields & { readonly signature: string; readonly publicKeyHex: string },
): boolean {
  const { signature, publicKeyHex } = answer;
  if (!signatureForm.test(signature) || !publicKeyForm.test(publicKeyHex)) return false;
  const key = Buffer.concat([publicKeyPrefix, Buffer.from(publicKeyHex, "hex")]);
  const text = Buffer.from(probeText(answer));
  return verify(null, text, { key, format: "der", type: "spki" }, Buffer.from(signature, "hex"));
}
