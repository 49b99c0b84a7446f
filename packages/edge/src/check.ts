// `--check`: everything that can be known without listening.
import { connect } from "node:net";
import { type CertificateFiles, certificateAge, certificateDateProblem, type Logger } from "@cellkit/daemon";
import { readCertificate } from "./certificate.ts";
import type { BackendOrigin } from "./core/backend-origin.ts";
import { CertificateError, CheckFailedError } from "./errors.ts";

/** What is checked. */
export interface CheckOptions {
  files: CertificateFiles;
  backend: BackendOrigin;
  /** @default 5_000 */
  dialTimeoutMs?: number;
  log: Logger;
}

/**
 * Checks certificate, dates and backend, all of them.
 * @throws {@link CheckFailedError} (`CELLKIT_EDGE_CHECK_FAILED`) with every problem
 */
export async function checkEdge({ files, backend, dialTimeoutMs = 5_000, log }: CheckOptions): Promise<void> {
  const found = await Promise.all([certificateProblem(files, log), dialProblem(backend, dialTimeoutMs)]);
  const problems = found.filter((problem) => problem !== undefined);
  if (problems.length > 0) throw new CheckFailedError(problems);
  log.info({ backend: backend.origin }, "the check found nothing wrong");
}

async function certificateProblem(files: CertificateFiles, log: Logger): Promise<string | undefined> {
  try {
    const pair = await readCertificate(files);
    const problem = certificateDateProblem(pair, Date.now());
    if (problem !== undefined) return `the certificate ${files.certPath} ${problem}`;
    const validTo = new Date(pair.validToMs).toISOString();
    if (certificateAge(pair, Date.now()) === "ending") log.warn({ validTo }, "the certificate expires soon");
    else log.info({ validTo }, "the certificate is good");
    return undefined;
  } catch (error) {
    if (error instanceof CertificateError) return error.message;
    throw error;
  }
}

function dialProblem({ host, port, origin }: BackendOrigin, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    let problem: string | undefined =
      `the backend ${origin} did not accept a connection within ${timeoutMs} ms`;
    socket.once("connect", () => {
      problem = undefined;
      socket.destroy();
    });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => {
      problem = `the backend ${origin} does not accept connections (${code})`;
    });
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(problem);
    });
  });
}
