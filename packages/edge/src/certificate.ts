// The edge's certificate: read and watched as every daemon's, told in the edge's words.
import {
  CertificateFileError,
  type CertificateFiles,
  type CertificatePair,
  readCertificate as readFiles,
} from "@cellkit/daemon";
import { CertificateError } from "./errors.ts";

/** @throws CertificateError (`CELLKIT_EDGE_CERTIFICATE`) when the files cannot be used. Says nothing about the pair's dates. */
export async function readCertificate(files: CertificateFiles): Promise<CertificatePair> {
  try {
    return await readFiles(files);
  } catch (error) {
    throw error instanceof CertificateFileError ? certificateError(error) : error;
  }
}

/** The same problem under the edge's code. */
export function certificateError(error: CertificateFileError): CertificateError {
  return new CertificateError(error.path, error.problem, { cause: error });
}
