/** Requests on the bucket: ListObjectsV2, multi-delete, location. */
import { fromBytes, keyBytes, toBytes } from "../core/object-key.ts";
import { BucketKeyError, RequestRefusal } from "../errors.ts";
import { diskFailure } from "../store/disk-failure.ts";
import { afterKey, type ListingItem, listing } from "../store/listing.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { endOfPrefix } from "../store/walk.ts";
import { type Answer, xmlAnswer } from "./answer.ts";
import type { Payload } from "./payload.ts";
import { parameter, type RequestHead } from "./request-head.ts";
import { parseDelete, type XmlElement } from "./xml.ts";

const PAGE_LIMIT_COUNT = 1000;
const DELETE_LIMIT_COUNT = 1000;
const DELETE_PARALLEL_COUNT = 16;

/** ListObjectsV2. */
export async function listObjects(store: ObjectStore, request: RequestHead): Promise<Answer> {
  const prefix = parameter(request, "prefix") ?? "";
  const delimiter = parameter(request, "delimiter") ?? "";
  const startAfter = parameter(request, "start-after");
  const token = parameter(request, "continuation-token");
  const encoding = parameter(request, "encoding-type");
  const maxKeys = pageSize(parameter(request, "max-keys"));
  if (encoding !== undefined && encoding !== "url") throw invalidArgument("encoding-type must be url.");
  const from =
    token === undefined ? (startAfter === undefined ? "" : afterKey(toBytes(startAfter))) : readToken(token);
  const items: ListingItem[] = [];
  let more = false;
  if (maxKeys > 0) {
    for await (const item of listing(store, {
      prefix: toBytes(prefix),
      delimiter: toBytes(delimiter),
      from,
    })) {
      more = items.length === maxKeys;
      if (more) break;
      items.push(item);
    }
  }
  const encode = encoding === "url" ? encodeKey : (text: string) => text;
  const last = items.at(-1);
  const content: XmlElement[] = [
    ["Name", request.bucket],
    ["Prefix", encode(prefix)],
    ...(delimiter === "" ? [] : [["Delimiter", encode(delimiter)] as const]),
    ...(startAfter === undefined ? [] : [["StartAfter", encode(startAfter)] as const]),
    ...(token === undefined ? [] : [["ContinuationToken", token] as const]),
    ...(encoding === undefined ? [] : [["EncodingType", encoding] as const]),
    ["KeyCount", items.length],
    ["MaxKeys", maxKeys],
    ["IsTruncated", more],
    ...(more && last !== undefined ? [["NextContinuationToken", writeToken(last)] as const] : []),
    ...items.map((item) => element(item, encode)),
  ];
  return xmlAnswer("ListBucketResult", content);
}

function element(item: ListingItem, encode: (text: string) => string): XmlElement {
  if (item.kind === "prefix") return ["CommonPrefixes", [["Prefix", encode(fromBytes(item.prefix) ?? "")]]];
  return [
    "Contents",
    [
      ["Key", encode(fromBytes(item.key) ?? "")],
      ["LastModified", new Date(item.head.modifiedMs).toISOString()],
      ["ETag", `"${item.head.etag}"`],
      ["Size", item.head.sizeBytes],
      ["StorageClass", "STANDARD"],
    ],
  ];
}

/** Multi-delete: up to 1,000 keys; each succeeds or fails on its own. */
export async function deleteObjects(store: ObjectStore, payload: Payload): Promise<Answer> {
  const { Quiet, Object: objects } = parseDelete((await payload.collect()).toString("utf8"));
  if (objects.length > DELETE_LIMIT_COUNT) {
    throw new RequestRefusal(400, "MalformedXML", `A multi-delete takes at most ${DELETE_LIMIT_COUNT} keys.`);
  }
  const results: XmlElement[] = [];
  for (let at = 0; at < objects.length; at += DELETE_PARALLEL_COUNT) {
    const group = objects.slice(at, at + DELETE_PARALLEL_COUNT);
    results.push(...(await Promise.all(group.map((object) => deleteOne(store, object)))));
  }
  const shown = Quiet === "true" ? results.filter(([name]) => name === "Error") : results;
  return xmlAnswer("DeleteResult", shown);
}

async function deleteOne(
  store: ObjectStore,
  object: { Key: string; ETag?: string | undefined; VersionId?: string | undefined },
): Promise<XmlElement> {
  const failed = (code: string, message: string): XmlElement => [
    "Error",
    [
      ["Key", object.Key],
      ["Code", code],
      ["Message", message],
    ],
  ];
  if (object.VersionId !== undefined) return failed("NotImplemented", "This server keeps no versions.");
  try {
    const etag = object.ETag?.replace(/^"(.*)"$/, "$1");
    const outcome = await store.delete(
      object.Key,
      etag === undefined ? { kind: "none" } : { kind: "etag", etags: [etag] },
    );
    if (outcome.kind === "mismatch") return failed("PreconditionFailed", "The object's ETag is another one.");
    return ["Deleted", [["Key", object.Key]]];
  } catch (error) {
    if (error instanceof BucketKeyError) return failed("InvalidArgument", error.message);
    return failed("InternalError", diskFailure(store.layout.root, error).code);
  }
}

/** GetBucketLocation; S3 says nothing for us-east-1. */
export function bucketLocation(region: string): Answer {
  return xmlAnswer("LocationConstraint", region === "us-east-1" ? "" : region);
}

function pageSize(text: string | undefined): number {
  if (text === undefined) return PAGE_LIMIT_COUNT;
  if (!/^\d{1,9}$/.test(text)) throw invalidArgument("max-keys must be a number.");
  return Math.min(Number(text), PAGE_LIMIT_COUNT);
}

/** A token is where to go on, so that it stays right whatever is written or deleted between two pages. */
function writeToken(last: ListingItem): string {
  const next = last.kind === "object" ? afterKey(last.key) : endOfPrefix(last.prefix);
  return Buffer.from(next, "latin1").toString("base64url");
}

function readToken(token: string): string {
  if (!/^[A-Za-z0-9_-]{1,2000}$/.test(token))
    throw invalidArgument("The continuation token is not one of ours.");
  return Buffer.from(token, "base64url").toString("latin1");
}

function encodeKey(key: string): string {
  return encodeURIComponent(key).replaceAll("%2F", "/");
}

function invalidArgument(message: string): RequestRefusal {
  return new RequestRefusal(400, "InvalidArgument", message);
}

/** Checks a key that came in a URL. @throws RequestRefusal KeyTooLongError, InvalidURI */
export function requireKey(key: string): void {
  try {
    keyBytes(key);
  } catch (error) {
    if (!(error instanceof BucketKeyError)) throw error;
    const tooLong = Buffer.byteLength(key) > 1024;
    throw new RequestRefusal(400, tooLong ? "KeyTooLongError" : "InvalidURI", error.message, {
      cause: error,
    });
  }
}
