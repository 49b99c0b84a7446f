/** A request's head, checked: what the rest of the server works from. Nothing of the body has been read yet. */
import type { IncomingMessage } from "node:http";
import { fromBytes } from "../core/object-key.ts";
import { RequestRefusal } from "../errors.ts";

/** S3's limit of a request line is 8 KiB and more; 3 × 1,024 bytes of key and the query fit in here. */
const URL_LIMIT_BYTES = 8 * 1024;
const QUERY_LIMIT_COUNT = 32;

/** Query parameters that name a kind of request or shape its answer; any other is refused, not ignored. */
const KNOWN_PARAMETERS = new Set([
  "x-id",
  "list-type",
  "prefix",
  "delimiter",
  "continuation-token",
  "start-after",
  "max-keys",
  "encoding-type",
  "fetch-owner",
  "delete",
  "location",
  "uploads",
  "uploadId",
  "partNumber",
  "max-parts",
  "part-number-marker",
]);

/** Headers that would change what is stored or who may read it, which this server does not do. */
const UNSUPPORTED_HEADERS = [
  /^x-amz-copy-source/,
  /^x-amz-server-side-encryption/,
  /^x-amz-object-lock-/,
  /^x-amz-grant-/,
  /^x-amz-tagging$/,
  /^x-amz-website-redirect-location$/,
  /^x-amz-write-offset-bytes$/,
  /^x-amz-mfa$/,
];

/** The head of one request. */
export interface RequestHead {
  method: string;
  /** Decoded path, a byte string. */
  path: string;
  bucket: string;
  /** "" for a request on the bucket. */
  key: string;
  /** Decoded; byte strings. */
  query: readonly (readonly [string, string])[];
  /** Names in lower case; each appears once. */
  headers: ReadonlyMap<string, string>;
}

/** Reads the head. @throws RequestRefusal */
export function parseHead(request: IncomingMessage): RequestHead {
  const url = request.url ?? "";
  if (Buffer.byteLength(url) > URL_LIMIT_BYTES) {
    throw new RequestRefusal(414, "RequestURITooLong", `The URI is longer than ${URL_LIMIT_BYTES} bytes.`);
  }
  const at = url.indexOf("?");
  const path = percentDecode(at < 0 ? url : url.slice(0, at));
  if (!path.startsWith("/")) throw invalidUri("The request target must be an absolute path.");
  const slash = path.indexOf("/", 1);
  const bucket = path.slice(1, slash < 0 ? undefined : slash);
  const key = fromBytes(slash < 0 ? "" : path.slice(slash + 1));
  if (key === undefined) throw invalidUri("The key is not UTF-8.");
  return {
    method: request.method ?? "",
    path,
    bucket,
    key,
    query: at < 0 ? [] : parseQuery(url.slice(at + 1)),
    headers: parseHeaders(request.rawHeaders),
  };
}

/** Refuses what this server does not do rather than doing half of it. Called once the signature is known to be right. */
export function refuseUnsupported(head: RequestHead): void {
  for (const [name] of head.query) {
    if (!KNOWN_PARAMETERS.has(name)) throw notImplemented(`query parameter ${JSON.stringify(name)}`);
  }
  for (const name of head.headers.keys()) {
    if (UNSUPPORTED_HEADERS.some((pattern) => pattern.test(name))) throw notImplemented(`header ${name}`);
  }
  const acl = head.headers.get("x-amz-acl");
  if (acl !== undefined && acl !== "private" && acl !== "bucket-owner-full-control") {
    throw notImplemented(`x-amz-acl: ${acl}`);
  }
  const storageClass = head.headers.get("x-amz-storage-class");
  if (storageClass !== undefined && storageClass !== "STANDARD") {
    throw notImplemented(`x-amz-storage-class: ${storageClass}`);
  }
}

/** A query parameter as text; undefined when absent. */
export function parameter(head: RequestHead, name: string): string | undefined {
  const found = head.query.find(([key]) => key === name)?.[1];
  if (found === undefined) return undefined;
  const text = fromBytes(found);
  if (text === undefined) throw invalidUri(`The query parameter ${name} is not UTF-8.`);
  return text;
}

/** Something of S3 that this server does not have. */
export function notImplemented(what: string): RequestRefusal {
  return new RequestRefusal(501, "NotImplemented", `This server does not implement ${what}.`);
}

function invalidUri(message: string): RequestRefusal {
  return new RequestRefusal(400, "InvalidURI", message);
}

function parseHeaders(raw: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = (raw[index] ?? "").toLowerCase();
    if (headers.has(name)) {
      throw new RequestRefusal(400, "InvalidRequest", `The header ${name} appears twice.`);
    }
    headers.set(name, raw[index + 1] ?? "");
  }
  return headers;
}

function parseQuery(text: string): [string, string][] {
  const fields = text.split("&").filter((field) => field !== "");
  if (fields.length > QUERY_LIMIT_COUNT) throw invalidUri("The query has too many parameters.");
  const query = fields.map((field): [string, string] => {
    const at = field.indexOf("=");
    return at < 0
      ? [percentDecode(field), ""]
      : [percentDecode(field.slice(0, at)), percentDecode(field.slice(at + 1))];
  });
  if (new Set(query.map(([name]) => name)).size !== query.length) {
    throw invalidUri("A query parameter appears twice.");
  }
  return query;
}

/** Undoes percent-encoding into a byte string. */
function percentDecode(text: string): string {
  if (/%(?![0-9a-fA-F]{2})/.test(text)) throw invalidUri("The URI has a malformed escape.");
  // Node hands out the request line as latin1, so unescaped characters are bytes already.
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
