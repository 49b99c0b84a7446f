// The certificates that a router's certificate may come from, read anew for each call.
import { X509Certificate } from "node:crypto";
import { readBoundedFile } from "./bounded-file.ts";

const maxCaBytes = 4 * 1024 * 1024;

export type CaRead =
  | { readonly kind: "ca"; readonly pem: string }
  | { readonly kind: "invalid"; readonly problem: string; readonly cause?: unknown };

/** The bundle in a file, if every certificate in it can be read and there is at least one. */
export async function readCaFile(path: string): Promise<CaRead> {
  const file = await readBoundedFile(path, maxCaBytes);
  if (file.kind !== "bytes") return { kind: "invalid", problem: file.problem, cause: file.cause };
  if (file.bytes.length > maxCaBytes)
    return { kind: "invalid", problem: `is longer than ${maxCaBytes} bytes` };
  const pem = Buffer.from(file.bytes).toString("latin1");
  const problem = bundleProblem(pem);
  return problem === undefined ? { kind: "ca", pem } : { kind: "invalid", problem };
}

/** What is wrong with a bundle. Node would take one without a certificate for "use the system's", or fail on each connection. */
export function bundleProblem(pem: string): string | undefined {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return "has no PEM certificate";
  return blocks.every(isCertificate) ? undefined : "has a PEM block that is no certificate";
}

function isCertificate(block: string): boolean {
  try {
    new X509Certificate(block);
    return true;
  } catch {
    return false;
  }
}
