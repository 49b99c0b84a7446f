// Certificate and key of the listener, where it speaks TLS: read as a pair, and again when one of the files changes.
import { type BigIntStats, constants, promises } from "node:fs";
import { createSecureContext, type TlsOptions } from "node:tls";
import { CertificateError } from "./errors.ts";

/** Where the pair lies. */
export interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
}

/** @throws CertificateError (CELLKIT_ROUTER_CERTIFICATE) when the files are no pair; nothing of their content is in the message */
export async function readCertificate({ certPath, keyPath }: CertificateFiles): Promise<TlsOptions> {
  const [cert, key] = await Promise.all([read(certPath), read(keyPath)]);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new CertificateError(certPath, `is no certificate in PEM that belongs to the key ${keyPath}`, {
      cause,
    });
  }
  return { cert, key, minVersion: "TLSv1.3", ALPNProtocols: ["http/1.1"] };
}

/** The most bytes of a certificate with its chain, or of a key. */
const maxFileBytes = 1_048_576;

async function read(path: string): Promise<Buffer> {
  try {
    return await readBounded(path);
  } catch (cause) {
    if (cause instanceof CertificateError) throw cause;
    throw new CertificateError(path, `cannot be read (${(cause as NodeJS.ErrnoException).code})`, { cause });
  }
}

async function readBounded(path: string): Promise<Buffer> {
  // A pipe without a writer is not waited for, and what has no end is not read.
  await using file = await promises.open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (!(await file.stat()).isFile()) throw new CertificateError(path, "is no regular file");
  const bytes = Buffer.alloc(maxFileBytes + 1);
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
    if (bytesRead === 0) return bytes.subarray(0, length);
    length += bytesRead;
  }
  throw new CertificateError(path, `is longer than ${maxFileBytes} bytes`);
}

/** What a watch is told to do. */
export interface CertificateWatchOptions {
  readonly onChange: (tls: TlsOptions) => void;
  /** The files are no pair any more; the pair in use stays. Once for each change of the files. */
  readonly onProblem: (error: CertificateError) => void;
  /** @default 1_000 */
  readonly intervalMs?: number;
}

/** Looks by stat and not by a watcher, so that a projection's swap of links is seen too. Files are replaced one after the other: a change counts when it is still the same at the next look. */
export function watchCertificate(
  files: CertificateFiles,
  { onChange, onProblem, intervalMs = 1_000 }: CertificateWatchOptions,
): { close(): void } {
  let used: string | undefined;
  let seen: string | undefined;
  const look = async () => {
    const versions = await fileVersions(files);
    used ??= versions;
    const isSettled = seen === versions;
    seen = versions;
    if (!isSettled || versions === used) return;
    used = versions;
    try {
      onChange(await readCertificate(files));
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      onProblem(error);
    }
  };
  const timer = setInterval(() => void look(), intervalMs).unref();
  void look();
  return { close: () => clearInterval(timer) };
}

async function fileVersions({ certPath, keyPath }: CertificateFiles): Promise<string> {
  const versions = await Promise.all(
    [certPath, keyPath].map((path) =>
      promises.stat(path, { bigint: true }).then(
        ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats) => [dev, ino, size, mtimeNs, ctimeNs].join(":"),
        ({ code }: NodeJS.ErrnoException) => String(code),
      ),
    ),
  );
  return versions.join(" ");
}
