/** GET, HEAD, PUT and DELETE of one object. */
import { resolveRange } from "../core/byte-range.ts";
import { RequestRefusal } from "../errors.ts";
import type { ObjectHead } from "../store/object-file.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { StagedObject } from "../store/staging.ts";
import type { Answer } from "./answer.ts";
import { isChecksumHeader } from "./checksums.ts";
import { noSuchKey, notModified, requireApplied, writeCondition } from "./conditions.ts";
import type { Payload } from "./payload.ts";
import type { RequestHead } from "./request-head.ts";

const KEPT_HEADERS = new Set([
  "content-type",
  "content-encoding",
  "content-language",
  "content-disposition",
  "cache-control",
  "expires",
]);
/** S3 allows 2 KiB of user metadata; with the other headers this stays below what a footer takes. */
const KEPT_LIMIT_BYTES = 8 * 1024;

/** GET and HEAD. The caller closes the object of the answer's body. */
export async function readObject(store: ObjectStore, request: RequestHead): Promise<Answer> {
  const object = await store.open(request.key);
  if (object === undefined) throw noSuchKey();
  let kept = false;
  try {
    const { head } = object;
    const headers = describe(head);
    if (notModified(request, head)) return { status: 304, headers };
    const rangeHeader = request.headers.get("range");
    const range = rangeHeader === undefined ? undefined : resolveRange(rangeHeader, head.sizeBytes);
    if (range === "unsatisfiable") {
      throw new RequestRefusal(
        416,
        "InvalidRange",
        `The object has ${head.sizeBytes} bytes; the range holds none of them.`,
      );
    }
    const { start, end } = range ?? { start: 0, end: head.sizeBytes };
    headers["content-length"] = String(end - start);
    if (range !== undefined) headers["content-range"] = `bytes ${start}-${end - 1}/${head.sizeBytes}`;
    else if (request.headers.get("x-amz-checksum-mode")?.toUpperCase() === "ENABLED") {
      Object.assign(headers, checksumsOf(head.headers));
    }
    const status = range === undefined ? 200 : 206;
    if (request.method === "HEAD") return { status, headers };
    const body = object.inMemory(start, end);
    if (body !== undefined) return { status, headers, body };
    kept = true;
    return { status, headers, body: { object, start, end } };
  } finally {
    if (!kept) object.close();
  }
}

/** PUT: the body is staged, checked as a whole, and published under the condition. */
export async function putObject(store: ObjectStore, request: RequestHead, payload: Payload): Promise<Answer> {
  const condition = writeCondition(request);
  const headers = keptHeaders(request);
  const early = await store.precheck(request.key, condition);
  if (early.kind !== "applied") {
    await payload.drop();
    requireApplied(early);
  }
  const staged = store.stage();
  try {
    await receive(store, staged, payload);
    const { etag } = staged.finish({ ...headers, ...payload.checksums });
    requireApplied(await store.put(request.key, staged, condition));
    return { status: 200, headers: { etag: `"${etag}"`, ...checksumsOf(payload.checksums) } };
  } finally {
    await staged.discard();
  }
}

/** DELETE; an absent object is fine unless a condition was set. */
export async function deleteObject(store: ObjectStore, request: RequestHead): Promise<Answer> {
  const condition = writeCondition(request);
  const outcome = await store.delete(request.key, condition);
  if (condition.kind !== "none") requireApplied(outcome);
  return { status: 204, headers: {} };
}

/** Writes a body into a staged object. */
export async function receive(store: ObjectStore, staged: StagedObject, payload: Payload): Promise<void> {
  for await (const piece of payload.read()) await store.guarded(() => staged.write(piece));
}

/** What of a PUT's head is kept with the object. @throws RequestRefusal MetadataTooLarge */
export function keptHeaders(request: RequestHead): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of request.headers) {
    if (KEPT_HEADERS.has(name) || name.startsWith("x-amz-meta-")) kept[name] = value;
  }
  const encodings = (kept["content-encoding"] ?? "").split(",").map((encoding) => encoding.trim());
  const encoding = encodings.filter((name) => name !== "" && name.toLowerCase() !== "aws-chunked").join(",");
  delete kept["content-encoding"];
  if (encoding !== "") kept["content-encoding"] = encoding;
  kept["content-type"] ??= "binary/octet-stream";
  if (Buffer.byteLength(JSON.stringify(kept)) > KEPT_LIMIT_BYTES) {
    throw new RequestRefusal(
      400,
      "MetadataTooLarge",
      `The object's headers take more than ${KEPT_LIMIT_BYTES} bytes.`,
    );
  }
  return kept;
}

/** Checksum headers to answer with. */
export function checksumsOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const found = Object.entries(headers).filter(([name]) => isChecksumHeader(name));
  return found.length === 0 ? {} : { ...Object.fromEntries(found), "x-amz-checksum-type": "FULL_OBJECT" };
}

function describe(head: ObjectHead): Record<string, string> {
  const kept = Object.entries(head.headers).filter(([name]) => !isChecksumHeader(name));
  return {
    ...Object.fromEntries(kept),
    etag: `"${head.etag}"`,
    "last-modified": new Date(head.modifiedMs).toUTCString(),
    "accept-ranges": "bytes",
  };
}
