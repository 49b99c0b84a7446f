/** The key pair of a process: made at its start, its public half in the node's record, its private half never written. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";

/** An Ed25519 key pair (RFC 8032) by which a process proves that it wrote the node's record. */
export interface ProbeKey {
  readonly privateKey: KeyObject;
  /** 64 lower-case hex digits: the record's `probe_public_key`, and the name of the process's generation. */
  readonly publicKeyHex: string;
}

/** SubjectPublicKeyInfo of an Ed25519 key (RFC 8410) up to the key's own 32 bytes. */
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** Makes a key pair. */
export function createProbeKey(): ProbeKey {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const der = publicKey.export({ format: "der", type: "spki" });
  return { privateKey, publicKeyHex: der.subarray(spkiPrefix.length).toString("hex") };
}
