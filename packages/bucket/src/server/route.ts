/** Which request this is. Everything that is not listed here is refused. */
import { RequestRefusal } from "../errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type Answer, xmlAnswer } from "./answer.ts";
import { bucketLocation, deleteObjects, listObjects, requireKey } from "./bucket-requests.ts";
import type { MultipartRequests } from "./multipart-requests.ts";
import { deleteObject, putObject, readObject } from "./object-requests.ts";
import type { Payload } from "./payload.ts";
import { notImplemented, parameter, type RequestHead } from "./request-head.ts";

/** What requests work on. */
export interface Site {
  store: ObjectStore;
  multipart: MultipartRequests;
  bucketName: string;
  region: string;
  objectLimitBytes: number;
}

/** The most that a request of a kind whose body is XML may send: 1,000 keys of 1,024 bytes, escaped. */
const XML_LIMIT_BYTES = 4 * 1024 * 1024;

/** How many bytes the body of this request may have. */
export function bodyLimit(head: RequestHead, site: Site): number {
  if (head.method === "PUT") return head.key === "" ? XML_LIMIT_BYTES : site.objectLimitBytes;
  return head.method === "POST" ? XML_LIMIT_BYTES : 0;
}

/** Refuses a request that is wrong by its head alone, before its body is asked for. */
export function checkTarget(head: RequestHead, site: Site): void {
  if (head.bucket === "") {
    if (head.method !== "GET") throw notImplemented(`${head.method} on the service`);
    return;
  }
  if (head.bucket !== site.bucketName) {
    const { method, key } = head;
    if (method === "PUT" && key === "") {
      throw new RequestRefusal(403, "AccessDenied", `This server has the one bucket ${site.bucketName}.`);
    }
    throw new RequestRefusal(404, "NoSuchBucket", `This server has the one bucket ${site.bucketName}.`);
  }
  if (head.key !== "") requireKey(head.key);
}

/** Answers a request whose head was checked. */
export function answerRequest(head: RequestHead, payload: Payload, site: Site): Promise<Answer> | Answer {
  if (head.bucket === "") return listBuckets(site);
  return head.key === "" ? onBucket(head, payload, site) : onObject(head, payload, site);
}

function onBucket(head: RequestHead, payload: Payload, site: Site): Promise<Answer> | Answer {
  const has = (name: string) => head.query.some(([key]) => key === name);
  switch (head.method) {
    case "HEAD":
      return { status: 200, headers: { "x-amz-bucket-region": site.region } };
    case "GET":
      if (has("location")) return bucketLocation(site.region);
      if (has("uploads")) return site.multipart.list(head);
      if (parameter(head, "list-type") === "2") return listObjects(site.store, head);
      throw notImplemented("ListObjects version 1; use list-type=2");
    case "POST":
      if (has("delete")) return deleteObjects(site.store, payload);
      throw notImplemented("POST on the bucket without ?delete");
    case "PUT":
      throw new RequestRefusal(409, "BucketAlreadyOwnedByYou", "The bucket exists.");
    default:
      throw notImplemented(`${head.method} on the bucket`);
  }
}

function onObject(head: RequestHead, payload: Payload, site: Site): Promise<Answer> | Answer {
  const { store, multipart } = site;
  const has = (name: string) => head.query.some(([key]) => key === name);
  const upload = has("uploadId");
  switch (head.method) {
    case "GET":
      if (upload) return multipart.listParts(head);
      if (has("partNumber")) throw notImplemented("partNumber on a read");
      return readObject(store, head);
    case "HEAD":
      if (has("partNumber")) throw notImplemented("partNumber on a read");
      return readObject(store, head);
    case "PUT":
      return upload ? multipart.putPart(head, payload) : putObject(store, head, payload);
    case "POST":
      if (has("uploads")) return multipart.create(head);
      if (upload) return multipart.complete(head, payload, site.objectLimitBytes);
      throw notImplemented("POST on an object without ?uploads or ?uploadId");
    case "DELETE":
      return upload ? multipart.abort(head) : deleteObject(store, head);
    default:
      throw notImplemented(`${head.method} on an object`);
  }
}

function listBuckets(site: Site): Answer {
  return xmlAnswer("ListAllMyBucketsResult", [["Buckets", [["Bucket", [["Name", site.bucketName]]]]]]);
}
