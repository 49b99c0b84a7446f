/**
 * The body of a request, whatever form it comes in: hands out data as it arrives, and throws unless length, hash,
 * chunk signatures and checksums are all right. What it hands out may be published only after it ended well.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { ChunkedBody } from "../core/chunked-body.ts";
import { type ChunkSigner, equalSecretly } from "../core/sigv4.ts";
import { RequestRefusal } from "../errors.ts";
import { Checksum, isChecksumHeader } from "./checksums.ts";
import { notImplemented, type RequestHead } from "./request-head.ts";

const DROP_LIMIT_BYTES = 1024 * 1024;

/** What the head says about the body. */
export interface PayloadPlan {
  form: "plain" | "hashed" | "chunked" | "chunked-trailer";
  /** Of the data; undefined when the request has no body. */
  lengthBytes: number;
  signer: ChunkSigner | undefined;
}

/** Works out the form of the body from the head. @throws RequestRefusal */
export function planPayload(head: RequestHead, signer: ChunkSigner, limitBytes: number): PayloadPlan {
  const { headers } = head;
  const sha256 = headers.get("x-amz-content-sha256") ?? "";
  const form = formOf(sha256);
  const signed = form.startsWith("chunked") && sha256.startsWith("STREAMING-AWS4-");
  const lengthName = form.startsWith("chunked") ? "x-amz-decoded-content-length" : "content-length";
  const text = headers.get(lengthName);
  if (text === undefined && (headers.has("transfer-encoding") || form.startsWith("chunked"))) {
    throw new RequestRefusal(411, "MissingContentLength", `The request needs the header ${lengthName}.`);
  }
  if (text !== undefined && !/^\d{1,15}$/.test(text)) {
    throw new RequestRefusal(400, "InvalidRequest", `${lengthName} is not a number.`);
  }
  const lengthBytes = Number(text ?? "0");
  if (lengthBytes > limitBytes) {
    throw new RequestRefusal(
      400,
      "EntityTooLarge",
      `The body is larger than the ${limitBytes} bytes accepted here.`,
    );
  }
  return { form, lengthBytes, signer: signed ? signer : undefined };
}

function formOf(sha256: string): PayloadPlan["form"] {
  switch (sha256) {
    case "UNSIGNED-PAYLOAD":
      return "plain";
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
      return "chunked";
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
    case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
      return "chunked-trailer";
    default:
      if (/^[0-9a-f]{64}$/.test(sha256)) return "hashed";
      throw sha256.startsWith("STREAMING-")
        ? notImplemented(`x-amz-content-sha256: ${sha256.slice(0, 80)}`)
        : new RequestRefusal(400, "InvalidRequest", "x-amz-content-sha256 is not of a known form.");
  }
}

/** A body that is read once. */
export class Payload {
  /** The checksum headers that were checked, to be kept with the object; complete once {@link read} ended. */
  readonly checksums: Record<string, string> = {};
  readonly #request: IncomingMessage;
  readonly #head: RequestHead;
  readonly #plan: PayloadPlan;

  constructor(request: IncomingMessage, head: RequestHead, plan: PayloadPlan) {
    this.#request = request;
    this.#head = head;
    this.#plan = plan;
  }

  /** The data, piece by piece. @throws RequestRefusal IncompleteBody, XAmzContentSHA256Mismatch, BadDigest, … */
  async *read(): AsyncGenerator<Uint8Array> {
    const { form, lengthBytes, signer } = this.#plan;
    const checksums = await Promise.all(this.#checksumNames().map((name) => Checksum.create(name)));
    const hash = form === "hashed" ? createHash("sha256") : undefined;
    const decoder = form.startsWith("chunked")
      ? new ChunkedBody({
          decodedBytes: lengthBytes,
          trailer: form === "chunked-trailer",
          ...(signer === undefined ? {} : { signer }),
        })
      : undefined;
    let received = 0;
    for await (const bytes of this.#bytes()) {
      for (const piece of decoder?.push(bytes) ?? [bytes]) {
        received += piece.length;
        if (received > lengthBytes) throw incomplete(`more than the declared ${lengthBytes} bytes came`);
        hash?.update(piece);
        for (const checksum of checksums) checksum.update(piece);
        yield piece;
      }
    }
    decoder?.end();
    if (received !== lengthBytes) throw incomplete(`${received} of ${lengthBytes} bytes came`);
    if (
      hash !== undefined &&
      !equalSecretly(hash.digest("hex"), this.#head.headers.get("x-amz-content-sha256") ?? "")
    ) {
      throw new RequestRefusal(
        400,
        "XAmzContentSHA256Mismatch",
        "x-amz-content-sha256 does not match the body.",
      );
    }
    for (const checksum of checksums) {
      const claimed = this.#head.headers.get(checksum.name) ?? decoder?.trailers.get(checksum.name);
      checksum.check(claimed);
      if (checksum.name !== "content-md5") this.checksums[checksum.name] = claimed ?? "";
    }
    for (const name of decoder?.trailers.keys() ?? []) {
      if (!checksums.some((checksum) => checksum.name === name)) {
        throw new RequestRefusal(400, "MalformedTrailerError", `The trailer ${name} was not announced.`);
      }
    }
  }

  /** The whole body, of a kind that is kept in memory. */
  async collect(): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.read()) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** Reads a body that is not wanted, so that the connection can go on; a long one is left to the connection's end. */
  async drop(): Promise<void> {
    if (this.#plan.lengthBytes > DROP_LIMIT_BYTES) return;
    for await (const piece of this.read()) void piece;
  }

  async *#bytes(): AsyncGenerator<Uint8Array> {
    try {
      for await (const bytes of this.#request) yield bytes as Uint8Array;
    } catch (error) {
      throw new RequestRefusal(400, "IncompleteBody", "The connection ended within the body.", {
        cause: error,
      });
    }
  }

  #checksumNames(): string[] {
    const inHead = [...this.#head.headers.keys()].filter(isChecksumHeader);
    const announced = this.#head.headers.get("x-amz-trailer")?.toLowerCase().split(",") ?? [];
    return [...new Set([...inHead, ...announced.map((name) => name.trim())])];
  }
}

function incomplete(what: string): RequestRefusal {
  return new RequestRefusal(400, "IncompleteBody", `The body does not have its declared length: ${what}.`);
}
