// The certificate that a client shows to an edge that asks for one, and its key: read anew for each call.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { readBoundedFile } from "./bounded-file.ts";
import { bundleProblem } from "./ca-file.ts";

/** Where the two lie. */
export interface ClientCertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate with those that lead to its CA, and its key, PEM. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

export type ClientCertificateRead =
  | ({ readonly kind: "pair" } & ClientCertificate)
  | { readonly kind: "invalid"; readonly path: string; readonly problem: string; readonly cause?: unknown };

/** Of each file; a chain of certificates has a few kilobytes. */
const maxFileBytes = 1_048_576;

/** Two files cannot be replaced at once: a pair that does not fit is looked at once more, after this time. */
const secondLookMs = 250;

/** The pair, if both can be read and the key is the certificate's. Its dates and its CA are for the other side to judge. */
export async function readClientCertificate(
  files: ClientCertificateFiles,
  signal: AbortSignal,
): Promise<ClientCertificateRead> {
  const first = await readOnce(files);
  if (first.kind === "pair" || !first.mayBeHalfReplaced) return first;
  await pause(secondLookMs, undefined, { signal });
  return readOnce(files);
}

type ReadOnce =
  | Extract<ClientCertificateRead, { kind: "pair" }>
  | (Extract<ClientCertificateRead, { kind: "invalid" }> & { readonly mayBeHalfReplaced?: true });

async function readOnce({ certFile, keyFile }: ClientCertificateFiles): Promise<ReadOnce> {
  const cert = await readPem(certFile);
  if (cert.kind === "invalid") return cert;
  const key = await readPem(keyFile);
  if (key.kind === "invalid") return key;
  const problem = bundleProblem(cert.pem);
  if (problem !== undefined) return { kind: "invalid", path: certFile, problem };
  const privateKey = privateKeyOf(key.pem);
  if (privateKey === undefined) {
    return { kind: "invalid", path: keyFile, problem: "has no PEM private key without a passphrase" };
  }
  if (!new X509Certificate(cert.pem).checkPrivateKey(privateKey)) {
    const other = `has the key of another certificate than the first in ${certFile}`;
    return { kind: "invalid", path: keyFile, problem: other, mayBeHalfReplaced: true };
  }
  return { kind: "pair", cert: cert.pem, key: key.pem };
}

type PemRead =
  | { readonly kind: "text"; readonly pem: string }
  | Extract<ClientCertificateRead, { kind: "invalid" }>;

async function readPem(path: string): Promise<PemRead> {
  const file = await readBoundedFile(path, maxFileBytes);
  if (file.kind !== "bytes") return { kind: "invalid", path, problem: file.problem, cause: file.cause };
  if (file.bytes.length > maxFileBytes)
    return { kind: "invalid", path, problem: `is longer than ${maxFileBytes} bytes` };
  return { kind: "text", pem: Buffer.from(file.bytes).toString("latin1") };
}

/** What the library says of a text that is no key is left out: it would be about a secret. */
function privateKeyOf(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
