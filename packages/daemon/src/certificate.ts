// Certificate and key of a listener: read together, and checked as a pair.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type TlsOptions } from "node:tls";
import { type CertificatePair, certificateAge } from "./core/certificate-pair.ts";
import { CertificateFileError } from "./errors.ts";
import { readPlainFile } from "./plain-file.ts";

/** Where a pair lies. */
export interface CertificateFiles {
  /** PEM: the server's certificate, then those that lead to its CA. */
  readonly certPath: string;
  /** PEM, without a passphrase. */
  readonly keyPath: string;
  /** PEM: who signs the certificates of clients; undefined asks clients for none. */
  readonly clientCaPath?: string | undefined;
}

/** The most bytes of each file. */
const maxFileBytes = 1_048_576;

/**
 * Reads certificate, key and client CA, at most 1 MiB each, and checks that they can be used together. Says nothing about dates:
 * see {@link certificateDateProblem}.
 * @throws {@link CertificateFileError} (`CELLKIT_DAEMON_CERTIFICATE`) when a file is absent, unreadable, no plain file, too long or
 * not PEM, or the key is not the certificate's
 */
export async function readCertificate(files: CertificateFiles): Promise<CertificatePair> {
  const { certPath, keyPath, clientCaPath } = files;
  // One after the other, so that of several that cannot be read it is always the first that is told.
  const cert = await read(certPath);
  const key = await read(keyPath);
  const clientCa = clientCaPath === undefined ? undefined : await read(clientCaPath);
  const leaf = parse(certPath, () => new X509Certificate(cert), "is not a PEM certificate");
  const privateKey = parse(
    keyPath,
    () => createPrivateKey(key),
    "is not a PEM private key without a passphrase",
  );
  // A context by itself takes a key of another kind than its certificate's, and cannot shake hands then.
  if (!leaf.checkPrivateKey(privateKey))
    throw new CertificateFileError(certPath, `does not belong to the key ${keyPath}`);
  checkContext(files, { cert, key });
  if (clientCa !== undefined && clientCaPath !== undefined)
    parse(clientCaPath, () => new X509Certificate(clientCa), "is not a PEM certificate");
  return {
    ...{ cert, key, clientCa },
    validFromMs: Date.parse(leaf.validFrom),
    validToMs: Date.parse(leaf.validTo),
    names: leaf.subjectAltName,
    fingerprint: leaf.fingerprint256,
  };
}

/** What is wrong with a pair's dates, to be put behind a path or "the certificate"; undefined where it is valid. */
export function certificateDateProblem(
  pair: Pick<CertificatePair, "validFromMs" | "validToMs">,
  nowMs: number,
): string | undefined {
  switch (certificateAge(pair, nowMs)) {
    case "expired":
      return `expired at ${new Date(pair.validToMs).toISOString()}`;
    case "early":
      return `is not valid before ${new Date(pair.validFromMs).toISOString()}`;
    default:
      return undefined;
  }
}

/**
 * A pair as a TLS listener of `node:tls` or `node:https` takes it, and as its `setSecureContext` does: TLS 1.3, HTTP/1.1, and with a
 * client CA only clients with a certificate of it. Whether clients are asked is settled when the listener is made.
 */
export function certificateTlsOptions({ cert, key, clientCa }: CertificatePair): TlsOptions {
  const needsClient = clientCa !== undefined;
  return {
    ...{ cert, key },
    ...(needsClient ? { ca: clientCa } : {}),
    requestCert: needsClient,
    rejectUnauthorized: needsClient,
    // In each context: one without it would take the library's own.
    minVersion: "TLSv1.3",
    ALPNProtocols: ["http/1.1"],
  };
}

async function read(path: string): Promise<Buffer> {
  let found: Awaited<ReturnType<typeof readPlainFile>>;
  try {
    found = await readPlainFile(path, maxFileBytes);
  } catch (cause) {
    throw new CertificateFileError(path, `cannot be read (${(cause as NodeJS.ErrnoException).code})`, {
      cause,
    });
  }
  if (found === "not-plain") throw new CertificateFileError(path, "is no plain file");
  if (found === "too-long") throw new CertificateFileError(path, `is longer than ${maxFileBytes} bytes`);
  return found;
}

/** A key may be too short, or a certificate behind the first one broken. */
function checkContext({ certPath, keyPath }: CertificateFiles, pair: { cert: Buffer; key: Buffer }): void {
  try {
    createSecureContext(pair);
  } catch (cause) {
    const { code = "no reason was given" } = cause as NodeJS.ErrnoException;
    throw new CertificateFileError(certPath, `cannot be used with the key ${keyPath} (${code})`, { cause });
  }
}

function parse<T>(path: string, use: () => T, problem: string): T {
  try {
    return use();
  } catch (cause) {
    throw new CertificateFileError(path, problem, { cause });
  }
}
