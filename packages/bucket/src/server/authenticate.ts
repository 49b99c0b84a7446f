/** Who sent a request: AWS Signature Version 4 in the Authorization header, checked before any byte of the body. */

import type { ChunkSigner } from "../core/sigv4.ts";
import {
  ALGORITHM,
  equalSecretly,
  parseAuthorization,
  parseTimestamp,
  signatureOf,
  signingKey,
} from "../core/sigv4.ts";
import { RequestRefusal } from "../errors.ts";
import { notImplemented, type RequestHead } from "./request-head.ts";

/** As Amazon S3. */
const CLOCK_SKEW_LIMIT_MS = 15 * 60 * 1000;

/** Checks signatures against one pair of keys. */
export class Authenticator {
  readonly #accessKeyId: string;
  readonly #secretAccessKey: string;
  readonly #region: string;
  /** Of the latest day asked for. */
  #key: { date: string; key: Uint8Array } | undefined;

  constructor(credentials: { accessKeyId: string; secretAccessKey: string }, region: string) {
    this.#accessKeyId = credentials.accessKeyId;
    this.#secretAccessKey = credentials.secretAccessKey;
    this.#region = region;
  }

  /**
   * Checks the head and answers what the chunks of its body, if they are signed, continue from.
   * @throws RequestRefusal AccessDenied, AuthorizationHeaderMalformed, InvalidAccessKeyId, RequestTimeTooSkewed, SignatureDoesNotMatch
   */
  check(head: RequestHead, nowMs: number): ChunkSigner {
    const { headers } = head;
    if (head.query.some(([name]) => /^x-amz-signature$/i.test(name))) {
      throw notImplemented("presigned URLs; sign with the Authorization header");
    }
    const header = headers.get("authorization");
    if (header === undefined) {
      throw new RequestRefusal(403, "AccessDenied", "The request is not signed (no Authorization header).");
    }
    const authorization = parseAuthorization(header);
    if (authorization === undefined) {
      throw malformed(
        `The Authorization header is not of the form ${ALGORITHM} Credential=…, SignedHeaders=…, Signature=….`,
      );
    }
    if (authorization.region !== this.#region || authorization.service !== "s3") {
      throw malformed(
        `The credential scope must be ${this.#region}/s3; set the client's region to ${this.#region}.`,
      );
    }
    if (!equalSecretly(authorization.accessKeyId, this.#accessKeyId)) {
      throw new RequestRefusal(403, "InvalidAccessKeyId", "The access key id is not known to this server.");
    }
    const timestamp = headers.get("x-amz-date") ?? "";
    const timeMs = parseTimestamp(timestamp);
    if (timeMs === undefined || !timestamp.startsWith(authorization.date)) {
      throw malformed("x-amz-date is missing, malformed, or of another day than the credential scope.");
    }
    if (Math.abs(nowMs - timeMs) > CLOCK_SKEW_LIMIT_MS) {
      throw new RequestRefusal(
        403,
        "RequestTimeTooSkewed",
        "The request's time and the server's differ by more than 15 minutes; correct the clock.",
      );
    }
    this.#requireSigned(head, authorization.signedHeaders);
    const key = this.#keyOf(authorization.date);
    const expected = signatureOf(key, {
      method: head.method,
      path: head.path,
      query: head.query,
      headers: authorization.signedHeaders.map((name) => [name, headers.get(name) ?? ""]),
      payload: headers.get("x-amz-content-sha256") ?? "",
      timestamp,
      region: this.#region,
    });
    if (!equalSecretly(expected, authorization.signature)) {
      throw new RequestRefusal(
        403,
        "SignatureDoesNotMatch",
        "The signature does not match; check the secret access key and how the client signs.",
      );
    }
    return { key, timestamp, region: this.#region, seed: expected };
  }

  /** A header that is not signed could have been added on the way. */
  #requireSigned(head: RequestHead, signed: readonly string[]): void {
    const names = new Set(signed);
    if (signed.some((name) => !head.headers.has(name)) || names.size !== signed.length) {
      throw malformed("SignedHeaders names a header that was not sent, or one twice.");
    }
    for (const name of head.headers.keys()) {
      if ((name === "host" || name.startsWith("x-amz-")) && !names.has(name)) {
        throw new RequestRefusal(403, "AccessDenied", `The header ${name} was sent but not signed.`);
      }
    }
    if (!names.has("host")) throw malformed("The host header must be signed.");
    if (!head.headers.has("x-amz-content-sha256")) {
      throw new RequestRefusal(400, "InvalidRequest", "Missing required header: x-amz-content-sha256.");
    }
  }

  #keyOf(date: string): Uint8Array {
    if (this.#key?.date !== date) {
      this.#key = { date, key: signingKey(this.#secretAccessKey, date, this.#region) };
    }
    return this.#key.key;
  }
}

function malformed(message: string): RequestRefusal {
  return new RequestRefusal(400, "AuthorizationHeaderMalformed", message);
}
