/**
 * AWS Signature Version 4 as S3 uses it, from the verifier's side.
 * @see https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

export const ALGORITHM = "AWS4-HMAC-SHA256";
const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** The parts of an `Authorization` header. */
export interface Authorization {
  accessKeyId: string;
  /** `YYYYMMDD` */
  date: string;
  region: string;
  service: string;
  /** In lower case, as sent. */
  signedHeaders: readonly string[];
  /** 64 hex digits. */
  signature: string;
}

/** Reads `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`, or answers undefined when it is malformed. */
export function parseAuthorization(header: string): Authorization | undefined {
  if (!header.startsWith(`${ALGORITHM} `)) return undefined;
  const fields = new Map<string, string>();
  for (const field of header.slice(ALGORITHM.length + 1).split(",")) {
    const at = field.indexOf("=");
    const name = field.slice(0, Math.max(at, 0)).trim();
    if (at < 0 || fields.has(name)) return undefined;
    fields.set(name, field.slice(at + 1).trim());
  }
  const scope = /^([^/]+)\/([0-9]{8})\/([a-z0-9-]+)\/([a-z0-9-]+)\/aws4_request$/.exec(
    fields.get("Credential") ?? "",
  );
  const signature = fields.get("Signature") ?? "";
  const signedHeaders = (fields.get("SignedHeaders") ?? "").split(";");
  if (scope === null || fields.size !== 3 || !/^[0-9a-f]{64}$/.test(signature)) return undefined;
  if (!signedHeaders.every((name) => /^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name))) return undefined;
  const [, accessKeyId = "", date = "", region = "", service = ""] = scope;
  return { accessKeyId, date, region, service, signedHeaders, signature };
}

/** What of a request is signed. */
export interface SignedRequest {
  method: string;
  /** Decoded path, as a byte string. */
  path: string;
  /** Decoded names and values, as byte strings. */
  query: readonly (readonly [string, string])[];
  /** Values of the signed headers in the order of their names; a byte string each. */
  headers: readonly (readonly [string, string])[];
  /** The value of `x-amz-content-sha256`. */
  payload: string;
  /** `YYYYMMDDTHHMMSSZ` */
  timestamp: string;
  region: string;
}

/** `date/region/s3/aws4_request` */
function scopeOf(timestamp: string, region: string): string {
  return `${timestamp.slice(0, 8)}/${region}/s3/aws4_request`;
}

/** The key that signs for one day in one region. */
export function signingKey(secretAccessKey: string, date: string, region: string): Uint8Array {
  return ["s3", "aws4_request"].reduce(
    (key: Uint8Array, part) => hmac(key, part),
    hmac(hmac(Buffer.from(`AWS4${secretAccessKey}`, "utf8"), date), region),
  );
}

/** The signature in hex that a request must carry. */
export function signatureOf(key: Uint8Array, request: SignedRequest): string {
  const canonical = [
    request.method,
    encode(request.path, true),
    request.query
      .map(([name, value]) => [encode(name, false), encode(value, false)] as const)
      .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
      .map(([name, value]) => `${name}=${value}`)
      .join("&"),
    ...request.headers.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, " ")}`),
    "",
    request.headers.map(([name]) => name).join(";"),
    request.payload,
  ].join("\n");
  const digest = createHash("sha256").update(canonical, "latin1").digest("hex");
  const scope = scopeOf(request.timestamp, request.region);
  return hmac(key, `${ALGORITHM}\n${request.timestamp}\n${scope}\n${digest}`).toString("hex");
}

/** What each chunk of an aws-chunked body is signed with, beginning from the signature of the head. */
export interface ChunkSigner {
  key: Uint8Array;
  timestamp: string;
  region: string;
  /** The signature of the request's head. */
  seed: string;
}

/** The signature of a chunk whose data has this SHA-256 in hex. */
export function chunkSignature(signer: ChunkSigner, previous: string, dataSha256: string): string {
  return hmac(
    signer.key,
    `${ALGORITHM}-PAYLOAD\n${signer.timestamp}\n${scopeOf(signer.timestamp, signer.region)}\n${previous}\n${EMPTY_SHA256}\n${dataSha256}`,
  ).toString("hex");
}

/** The signature of trailing headers whose canonical form (`name:value\n` each) has this SHA-256 in hex. */
export function trailerSignature(signer: ChunkSigner, previous: string, trailerSha256: string): string {
  return hmac(
    signer.key,
    `${ALGORITHM}-TRAILER\n${signer.timestamp}\n${scopeOf(signer.timestamp, signer.region)}\n${previous}\n${trailerSha256}`,
  ).toString("hex");
}

/** Compares two texts in a time that does not depend on where they differ. */
export function equalSecretly(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text, "utf8").digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Milliseconds since the Unix epoch of `YYYYMMDDTHHMMSSZ`, or undefined when it is no such time. */
export function parseTimestamp(text: string): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (parts === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1).map(Number);
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
    return undefined;
  return (daysFromCivil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000;
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant's algorithm). */
function daysFromCivil(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return (
    era * 146_097 +
    yearOfEra * 365 +
    Math.floor(yearOfEra / 4) -
    Math.floor(yearOfEra / 100) +
    dayOfYear -
    719_468
  );
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text, "latin1").digest();
}

/** URI encoding as AWS defines it: all bytes but `A-Z a-z 0-9 - . _ ~`, and "/" only where it separates. */
function encode(bytes: string, keepSlash: boolean): string {
  return bytes.replace(keepSlash ? /[^A-Za-z0-9._~/-]/g : /[^A-Za-z0-9._~-]/g, (byte) => {
    return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
}
