// The certificate of the callers' side, where it speaks TLS: read and watched as every daemon's, told in the router's words.
import {
  CertificateFileError,
  type CertificateFiles,
  type CertificatePair,
  CertificateWatch,
  certificateDateProblem,
  certificateTlsOptions,
  type Logger,
  readCertificate as readFiles,
} from "@cellkit/daemon";
import { CertificateError } from "./errors.ts";
import type { Router } from "./router.ts";

/** @throws CertificateError (`CELLKIT_ROUTER_CERTIFICATE`) when the files cannot be used. Says nothing about the pair's dates. */
export async function readCertificate(files: CertificateFiles): Promise<CertificatePair> {
  try {
    return await readFiles(files);
  } catch (error) {
    throw error instanceof CertificateFileError ? certificateError(error) : error;
  }
}

/** Tells of a certificate that callers will refuse. */
export function logWrongDate(pair: CertificatePair, log: Logger): void {
  const problem = certificateDateProblem(pair, Date.now());
  if (problem !== undefined) log.error(`the certificate ${problem}: callers will refuse it`);
}

/** Gives a router that listens what comes into the files after `current` was read. */
export function watchCertificate(
  files: CertificateFiles,
  current: CertificatePair,
  { router, log }: { readonly router: Pick<Router, "renewTls">; readonly log: Logger },
): CertificateWatch {
  return new CertificateWatch(files, {
    current,
    onChange(pair) {
      router.renewTls(certificateTlsOptions(pair));
      const validTo = new Date(pair.validToMs).toISOString();
      log.info({ fingerprint: pair.fingerprint, validTo }, "new certificate in use");
    },
    onProblem(problem) {
      const error = certificateError(problem);
      log.error({ code: error.code }, `${error.message}; the pair in use stays`);
    },
  });
}

function certificateError(error: CertificateFileError): CertificateError {
  return new CertificateError(error.path, error.problem, { cause: error });
}
