/** Multipart uploads: create, put a part, list, complete, abort. */
import { RequestRefusal } from "../errors.ts";
import { MultipartUploads, PART_LIMIT_COUNT, type Upload } from "../store/multipart.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type Answer, xmlAnswer } from "./answer.ts";
import { isChecksumHeader } from "./checksums.ts";
import { requireApplied, writeCondition } from "./conditions.ts";
import { checksumsOf, keptHeaders, receive } from "./object-requests.ts";
import type { Payload } from "./payload.ts";
import { notImplemented, parameter, type RequestHead } from "./request-head.ts";
import { parseComplete, type XmlElement } from "./xml.ts";

const LISTED_LIMIT_COUNT = 1000;

/** Answers multipart requests of one store. */
export class MultipartRequests {
  readonly #store: ObjectStore;
  readonly #uploads: MultipartUploads;

  constructor(store: ObjectStore) {
    this.#store = store;
    this.#uploads = new MultipartUploads(store);
  }

  /** CreateMultipartUpload. */
  async create(request: RequestHead): Promise<Answer> {
    const id = await this.#uploads.create(request.key, keptHeaders(request), Date.now());
    return xmlAnswer("InitiateMultipartUploadResult", [
      ["Bucket", request.bucket],
      ["Key", request.key],
      ["UploadId", id],
    ]);
  }

  /** UploadPart. */
  async putPart(request: RequestHead, payload: Payload): Promise<Answer> {
    const upload = await this.#find(request);
    const text = parameter(request, "partNumber") ?? "";
    const partNumber = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    if (partNumber < 1 || partNumber > PART_LIMIT_COUNT) {
      throw new RequestRefusal(400, "InvalidArgument", `partNumber must be from 1 to ${PART_LIMIT_COUNT}.`);
    }
    const staged = this.#store.stage();
    try {
      await receive(this.#store, staged, payload);
      const { etag } = staged.finish({ ...payload.checksums });
      await this.#uploads.putPart(upload.id, partNumber, staged);
      return { status: 200, headers: { etag: `"${etag}"`, ...checksumsOf(payload.checksums) } };
    } finally {
      await staged.discard();
    }
  }

  /** CompleteMultipartUpload. */
  async complete(request: RequestHead, payload: Payload, limitBytes: number): Promise<Answer> {
    if (
      [...request.headers.keys()].some((name) => name.startsWith("x-amz-checksum-") && isChecksumHeader(name))
    ) {
      throw notImplemented("a checksum of the whole object when a multipart upload is completed");
    }
    const condition = writeCondition(request);
    const upload = await this.#find(request);
    const parts = parseComplete((await payload.collect()).toString("utf8"));
    if (parts.length === 0 || parts.length > PART_LIMIT_COUNT) {
      throw new RequestRefusal(400, "MalformedXML", `An upload has 1 to ${PART_LIMIT_COUNT} parts.`);
    }
    if (parts.some(({ partNumber }, index) => partNumber <= (parts[index - 1]?.partNumber ?? 0))) {
      throw new RequestRefusal(400, "InvalidPartOrder", "The parts must be in ascending order.");
    }
    const { outcome, etag } = await this.#uploads.complete(upload, parts, condition, limitBytes);
    if (outcome.kind === "invalid-part") {
      throw new RequestRefusal(
        400,
        "InvalidPart",
        `Part ${outcome.partNumber} is missing or has another ETag.`,
      );
    }
    if (outcome.kind === "too-large") {
      throw new RequestRefusal(
        400,
        "EntityTooLarge",
        `The parts hold more than the ${limitBytes} bytes accepted here.`,
      );
    }
    requireApplied(outcome);
    return xmlAnswer("CompleteMultipartUploadResult", [
      ["Bucket", request.bucket],
      ["Key", request.key],
      ["ETag", `"${etag}"`],
    ]);
  }

  /** AbortMultipartUpload. */
  async abort(request: RequestHead): Promise<Answer> {
    await this.#uploads.abort((await this.#find(request)).id);
    return { status: 204, headers: {} };
  }

  /** ListParts, without pages: an upload with more parts than one page holds is refused. */
  async listParts(request: RequestHead): Promise<Answer> {
    const upload = await this.#find(request);
    const after = Number(parameter(request, "part-number-marker") ?? "0");
    const all = (await this.#uploads.parts(upload.id)).filter(({ partNumber }) => partNumber > after);
    const page = all.slice(0, LISTED_LIMIT_COUNT);
    const more = all.length > page.length;
    return xmlAnswer("ListPartsResult", [
      ["Bucket", request.bucket],
      ["Key", request.key],
      ["UploadId", upload.id],
      ["MaxParts", LISTED_LIMIT_COUNT],
      ["IsTruncated", more],
      ...(more ? [["NextPartNumberMarker", page.at(-1)?.partNumber ?? 0] as const] : []),
      ...page.map(
        ({ partNumber, head }): XmlElement => [
          "Part",
          [
            ["PartNumber", partNumber],
            ["LastModified", new Date(head.modifiedMs).toISOString()],
            ["ETag", `"${head.etag}"`],
            ["Size", head.sizeBytes],
          ],
        ],
      ),
    ]);
  }

  /** ListMultipartUploads: at most 1,000, those with the lowest keys. */
  async list(request: RequestHead): Promise<Answer> {
    const prefix = parameter(request, "prefix") ?? "";
    const all = (await this.#uploads.list()).filter(({ key }) => key.startsWith(prefix));
    return xmlAnswer("ListMultipartUploadsResult", [
      ["Bucket", request.bucket],
      ["Prefix", prefix],
      ["MaxUploads", LISTED_LIMIT_COUNT],
      ["IsTruncated", all.length > LISTED_LIMIT_COUNT],
      ...all.slice(0, LISTED_LIMIT_COUNT).map(
        ({ key, id, startedMs }): XmlElement => [
          "Upload",
          [
            ["Key", key],
            ["UploadId", id],
            ["Initiated", new Date(startedMs).toISOString()],
          ],
        ],
      ),
    ]);
  }

  async #find(request: RequestHead): Promise<Upload> {
    const upload = await this.#uploads.find(parameter(request, "uploadId") ?? "", request.key);
    if (upload === undefined) throw new RequestRefusal(404, "NoSuchUpload", "The upload does not exist.");
    return upload;
  }
}
