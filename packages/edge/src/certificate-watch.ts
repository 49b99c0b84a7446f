// Looks at the files every so often, by stat and not by a watcher: an atomic rename, a Kubernetes projection's swap of links and
// a network file system are all the same to it.
import {
  type CertificateFiles,
  type CertificatePair,
  dateProblem,
  fileVersions,
  readCertificate,
} from "./certificate.ts";
import { CertificateError } from "./errors.ts";

/** How a watch is made. */
export interface CertificateWatchOptions {
  /** The pair in use. */
  current: CertificatePair;
  /** A new pair is good: use it. */
  onChange(pair: CertificatePair): void;
  /** The files cannot be used; the pair in use stays. Told once for each problem, and then again only when it is another. */
  onProblem(error: CertificateError): void;
  /** @default 1_000 */
  checkMs?: number;
}

/** Watches one pair until it is closed. */
export class CertificateWatch {
  readonly #files: CertificateFiles;
  readonly #options: CertificateWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #current: CertificatePair;
  #versions: string | undefined;
  #problem: string | undefined;
  /** The problem of the look before: files are replaced one after the other, so one look is no proof. */
  #suspicion: string | undefined;
  #looking: Promise<void> | undefined;

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

  /** Looks now. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #look(): Promise<void> {
    const versions = await fileVersions(this.#files);
    // While something is wrong each look reads: a date may come true without a change of the file.
    if (versions === this.#versions && this.#suspicion === undefined) return;
    try {
      const pair = await readCertificate(this.#files);
      const wrongDate = dateProblem(pair, Date.now());
      if (wrongDate !== undefined && !isSame(pair, this.#current))
        throw new CertificateError(this.#files.certPath, wrongDate);
      // Changed while it was read: the next look decides.
      if ((await fileVersions(this.#files)) !== versions) return;
      this.#versions = versions;
      this.#suspicion = undefined;
      this.#problem = undefined;
      if (isSame(pair, this.#current)) return;
      this.#current = pair;
      this.#options.onChange(pair);
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      const isProven = this.#suspicion === error.message;
      this.#suspicion = error.message;
      this.#versions = versions;
      if (!isProven || this.#problem === error.message) return;
      this.#problem = error.message;
      this.#options.onProblem(error);
    }
  }
}

function isSame(a: CertificatePair, b: CertificatePair): boolean {
  const hasSameCa =
    a.clientCa === undefined ? b.clientCa === undefined : b.clientCa?.equals(a.clientCa) === true;
  return hasSameCa && a.cert.equals(b.cert) && a.key.equals(b.key);
}
