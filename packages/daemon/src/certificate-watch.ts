// Looks at the files every so often, by stat and not by a watcher: an atomic rename, a Kubernetes projection's swap of links and
// a network file system are all the same to it.
import { type BigIntStats, promises } from "node:fs";
import { type CertificateFiles, certificateDateProblem, readCertificate } from "./certificate.ts";
import { type CertificatePair, isSamePair } from "./core/certificate-pair.ts";
import { CertificateFileError } from "./errors.ts";

/** How a watch is made. */
export interface CertificateWatchOptions {
  /** The pair in use, as it was read. What the files have had since then is a change. */
  current: CertificatePair;
  /** A new pair is good: use it. When it throws, the pair in use stays, and the files have a problem. */
  onChange(pair: CertificatePair): void;
  /** The files cannot be used; the pair in use stays. Told once for each problem, and then again only when it is another. */
  onProblem(error: CertificateFileError): void;
  /** How often the files are looked at. @default 1_000 */
  checkMs?: number;
}

/**
 * Watches the files of one pair until it is closed. A pair that is expired or not valid yet does not replace the one in use. Files are
 * replaced one after the other: a problem counts once two looks in a row have found it.
 */
export class CertificateWatch {
  /** Pairs taken into use, and problems told, since the start. */
  readonly counts = { reloads: 0, failures: 0 };
  readonly #files: CertificateFiles;
  readonly #options: CertificateWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #current: CertificatePair;
  #versions: string | undefined;
  #problem: string | undefined;
  /** The problem of the look before. */
  #suspicion: string | undefined;
  #looking: Promise<void> | undefined;
  #isClosed = false;

  constructor(files: CertificateFiles, options: CertificateWatchOptions) {
    this.#files = files;
    this.#options = options;
    this.#current = options.current;
    this.#timer = setInterval(() => void this.look(), options.checkMs ?? 1_000).unref();
  }

  /** The pair in use. */
  get current(): CertificatePair {
    return this.#current;
  }

  /** What keeps the files from being used, or undefined. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Looks now; one that has begun is waited for. Never rejects, unless `onProblem` throws. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Looks no more, and tells nothing more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #look(): Promise<void> {
    // Asked before the files are read: what changes meanwhile is seen at the next look.
    const versions = await fileVersions(this.#files);
    // While something is wrong each look reads: a date may come true without a change of the file.
    if (versions === this.#versions && this.#suspicion === undefined) return;
    try {
      const pair = await readCertificate(this.#files);
      const isNew = !isSamePair(pair, this.#current);
      const wrongDate = isNew ? certificateDateProblem(pair, Date.now()) : undefined;
      if (wrongDate !== undefined) throw new CertificateFileError(this.#files.certPath, wrongDate);
      if (this.#isClosed) return;
      if (isNew) this.#use(pair);
      this.#versions = versions;
      this.#suspicion = undefined;
      this.#problem = undefined;
    } catch (cause) {
      this.#doubt(versions, this.#asError(cause));
    }
  }

  #use(pair: CertificatePair): void {
    this.#options.onChange(pair);
    this.#current = pair;
    this.counts.reloads += 1;
  }

  #doubt(versions: string, error: CertificateFileError): void {
    if (this.#isClosed) return;
    const isProven = this.#suspicion === error.message;
    this.#suspicion = error.message;
    this.#versions = versions;
    if (!isProven || this.#problem === error.message) return;
    this.#problem = error.message;
    this.counts.failures += 1;
    this.#options.onProblem(error);
  }

  #asError(cause: unknown): CertificateFileError {
    if (cause instanceof CertificateFileError) return cause;
    return new CertificateFileError(this.#files.certPath, "could not be taken into use", { cause });
  }
}

/** Changes whenever one of the files is written, replaced, or reached through another link. Absent files count as well. */
async function fileVersions({ certPath, keyPath, clientCaPath }: CertificateFiles): Promise<string> {
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
