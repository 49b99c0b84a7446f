import type { S3Client } from "@aws-sdk/client-s3";
import type { ResolvedOptions } from "../options.ts";

const SOCKET_LIMIT_COUNT = 128;
const CONNECT_LIMIT_MS = 5_000;

/** The SDK and its clients for one bucket. */
export interface S3Clients {
  sdk: typeof import("@aws-sdk/client-s3");
  /** Repeats what fails. */
  reader: S3Client;
  /** Sends everything once: whether a write may be repeated is not the SDK's to decide. */
  writer: S3Client;
}

/** Loads the SDK. That takes a fifth of a second, so only who opens an s3:// bucket and uses it pays for it. */
export async function createS3Clients(options: ResolvedOptions): Promise<S3Clients> {
  const sdk = await import("@aws-sdk/client-s3");
  const { endpoint, region, credentials, timeoutMs, readAttemptCount } = options;
  const make = (maxAttempts: number) =>
    new sdk.S3Client({
      region,
      maxAttempts,
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
      ...(credentials === undefined ? {} : { credentials }),
      // The payload's SHA-256 is signed anyway; many S3-like stores refuse further checksums.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      requestHandler: {
        connectionTimeout: Math.min(timeoutMs, CONNECT_LIMIT_MS),
        requestTimeout: timeoutMs,
        throwOnRequestTimeout: true,
        httpAgent: { keepAlive: true, maxSockets: SOCKET_LIMIT_COUNT },
        httpsAgent: { keepAlive: true, maxSockets: SOCKET_LIMIT_COUNT },
      },
    });
  return { sdk, reader: make(readAttemptCount), writer: make(1) };
}
