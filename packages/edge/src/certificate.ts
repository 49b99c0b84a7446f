// Certificate and key: read together, checked as a pair, and read again when the files change.
import { X509Certificate } from "node:crypto";
import { type BigIntStats, constants, promises } from "node:fs";
import { createSecureContext } from "node:tls";
import { CertificateError } from "./errors.ts";

/** Where the pair lies. All paths are absolute. */
export interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
  /** Who signs the certificates of clients; undefined asks clients for none. */
  readonly clientCaPath?: string | undefined;
}

/** A pair that fits together. */
export interface CertificatePair {
  /** PEM: the server's certificate, then those that lead to its CA. */
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa: Buffer | undefined;
  /** Milliseconds since the epoch. */
  readonly validFromMs: number;
  readonly validToMs: number;
  /** SHA-256 of the server's certificate. */
  readonly fingerprint: string;
}

/** A certificate or key of more bytes is not one. */
const maxFileBytes = 1_048_576;

/**
 * Reads the pair and checks that the key is the certificate's. Says nothing about its dates.
 * @throws {@link CertificateError} (`CELLKIT_EDGE_CERTIFICATE`)
 */
export async function readCertificate(files: CertificateFiles): Promise<CertificatePair> {
  const { certPath, keyPath, clientCaPath } = files;
  const [cert, key] = await Promise.all([readFile(certPath), readFile(keyPath)]);
  const clientCa = clientCaPath === undefined ? undefined : await readFile(clientCaPath);
  const leaf = parse(certPath, () => new X509Certificate(cert), "is not a PEM certificate");
  parse(keyPath, () => createSecureContext({ key }), "is not a PEM private key without a passphrase");
  parse(certPath, () => createSecureContext({ cert, key }), `does not belong to the key ${keyPath}`);
  if (clientCa !== undefined && clientCaPath !== undefined)
    parse(clientCaPath, () => new X509Certificate(clientCa), "is not a PEM certificate");
  return {
    cert,
    key,
    clientCa,
    validFromMs: Date.parse(leaf.validFrom),
    validToMs: Date.parse(leaf.validTo),
    fingerprint: leaf.fingerprint256,
  };
}

/** What is wrong with the pair's dates, or undefined. */
export function dateProblem(
  { validFromMs, validToMs }: Pick<CertificatePair, "validFromMs" | "validToMs">,
  nowMs: number,
): string | undefined {
  if (nowMs >= validToMs) return `expired at ${new Date(validToMs).toISOString()}`;
  if (nowMs < validFromMs) return `is not valid before ${new Date(validFromMs).toISOString()}`;
  return undefined;
}

/** Changes whenever one of the files is written, replaced, or reached through another link. Absent files count as well. */
export async function fileVersions({ certPath, keyPath, clientCaPath }: CertificateFiles): Promise<string> {
  const paths = [certPath, keyPath, ...(clientCaPath === undefined ? [] : [clientCaPath])];
  const versions = await Promise.all(
    paths.map((path) =>
      promises.stat(path, { bigint: true }).then(
        ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats) => [dev, ino, size, mtimeNs, ctimeNs].join(":"),
        ({ code }: NodeJS.ErrnoException) => String(code),
      ),
    ),
  );
  return versions.join(" ");
}

async function readFile(path: string): Promise<Buffer> {
  try {
    // O_NONBLOCK: a FIFO that nobody writes to would block for ever.
    const file = await promises.open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) throw new CertificateError(path, "is no plain file");
      return await readBounded(path, file);
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (cause instanceof CertificateError) throw cause;
    throw new CertificateError(path, `cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

/** A file's size is not believed: it may grow while it is read. */
async function readBounded(path: string, file: promises.FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(65_536), 0, 65_536);
    if (bytesRead === 0) return Buffer.concat(chunks, length);
    chunks.push(buffer.subarray(0, bytesRead));
    length += bytesRead;
    if (length > maxFileBytes) throw new CertificateError(path, `is longer than ${maxFileBytes} bytes`);
  }
}

function parse<T>(path: string, read: () => T, problem: string): T {
  try {
    return read();
  } catch (cause) {
    throw new CertificateError(path, problem, { cause });
  }
}
