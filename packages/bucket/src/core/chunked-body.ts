/**
 * The aws-chunked body: `size-in-hex[;chunk-signature=…]\r\n data \r\n … 0[;chunk-signature=…]\r\n [trailers] \r\n`.
 * The decoder is handed bytes and hands out data as it comes; nothing of it may be published before {@link ChunkedBody.end}
 * returned, since only then every signature and the declared length are known to be right.
 * @see https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
 * @see https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
 */
import { createHash } from "node:crypto";
import { RequestRefusal } from "../errors.ts";
import { type ChunkSigner, chunkSignature, equalSecretly, trailerSignature } from "./sigv4.ts";

/** The longest line: a size, a signature and little more. */
const LINE_LIMIT_BYTES = 1024;
/** A few checksums and one signature. */
const TRAILER_LIMIT_COUNT = 8;

/** What the head of the request said about the body. */
export interface ChunkedBodyOptions {
  /** `x-amz-decoded-content-length` */
  decodedBytes: number;
  /** Whether trailing headers follow the last chunk. */
  trailer: boolean;
  /** Present when chunks are signed. */
  signer?: ChunkSigner;
}

type State = "size" | "data" | "dataEnd" | "trailer" | "done";

/** Decodes one body. Every method may throw RequestRefusal; after that the decoder must not be used again. */
export class ChunkedBody {
  /** Trailing headers in lower case; complete after {@link end}. */
  readonly trailers = new Map<string, string>();
  readonly #options: ChunkedBodyOptions;
  #state: State = "size";
  #line = "";
  #remaining = 0;
  #decoded = 0;
  #last = false;
  #claimed: string | undefined;
  #previous: string;
  #hash: ReturnType<typeof createHash> | undefined;
  #canonicalTrailers = "";
  #trailerSignature: string | undefined;

  constructor(options: ChunkedBodyOptions) {
    this.#options = options;
    this.#previous = options.signer?.seed ?? "";
  }

  /** Takes the next bytes and answers the data among them, in order. */
  push(bytes: Uint8Array): Uint8Array[] {
    const data: Uint8Array[] = [];
    let at = 0;
    while (at < bytes.length) {
      if (this.#state === "done") throw malformed("bytes follow the end of the body");
      if (this.#state === "data") {
        const piece = bytes.subarray(at, at + this.#remaining);
        at += piece.length;
        this.#remaining -= piece.length;
        this.#hash?.update(piece);
        data.push(piece);
        if (this.#remaining === 0) this.#state = "dataEnd";
      } else {
        at = this.#takeLine(bytes, at);
      }
    }
    return data;
  }

  /** Says that no more bytes come. @throws RequestRefusal IncompleteBody, SignatureDoesNotMatch or MalformedTrailerError */
  end(): void {
    if (this.#state !== "done") {
      throw new RequestRefusal(400, "IncompleteBody", "The chunked body ended before its last chunk.");
    }
    if (this.#decoded !== this.#options.decodedBytes) {
      throw new RequestRefusal(
        400,
        "IncompleteBody",
        `The chunks hold ${this.#decoded} bytes; x-amz-decoded-content-length says ${this.#options.decodedBytes}.`,
      );
    }
  }

  #takeLine(bytes: Uint8Array, from: number): number {
    const newline = bytes.indexOf(10, from);
    const to = newline < 0 ? bytes.length : newline + 1;
    if (this.#line.length + to - from > LINE_LIMIT_BYTES) {
      throw malformed(`a line is longer than ${LINE_LIMIT_BYTES} bytes`);
    }
    this.#line += Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("latin1");
    if (newline >= 0) {
      const line = this.#line;
      this.#line = "";
      if (!line.endsWith("\r\n")) throw malformed("a line does not end in CR LF");
      this.#onLine(line.slice(0, -2));
    }
    return to;
  }

  #onLine(line: string): void {
    if (this.#state === "size") this.#onSize(line);
    else if (this.#state === "dataEnd") this.#onDataEnd(line);
    else this.#onTrailer(line);
  }

  #onSize(line: string): void {
    const parts = /^([0-9a-fA-F]{1,13})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
    if (parts === null) throw malformed("a chunk has no readable size");
    const { signer, decodedBytes, trailer } = this.#options;
    this.#claimed = parts[2];
    if ((signer !== undefined) !== (this.#claimed !== undefined)) {
      throw malformed(signer ? "a chunk has no signature" : "a chunk of an unsigned body has a signature");
    }
    this.#remaining = Number.parseInt(parts[1] ?? "", 16);
    this.#decoded += this.#remaining;
    if (this.#decoded > decodedBytes) {
      throw malformed(`the chunks hold more than the ${decodedBytes} bytes of x-amz-decoded-content-length`);
    }
    this.#last = this.#remaining === 0;
    this.#hash = signer && createHash("sha256");
    if (!this.#last) {
      this.#state = "data";
      return;
    }
    this.#checkChunk();
    // Without trailers an empty line ends the body; with them the first line may already be one.
    this.#state = trailer ? "trailer" : "dataEnd";
  }

  #onDataEnd(line: string): void {
    if (line !== "") throw malformed("a chunk is longer than its size");
    if (this.#last) {
      this.#state = "done";
      return;
    }
    this.#checkChunk();
    this.#state = "size";
  }

  #checkChunk(): void {
    const { signer } = this.#options;
    if (signer === undefined || this.#hash === undefined) return;
    const expected = chunkSignature(signer, this.#previous, this.#hash.digest("hex"));
    if (!equalSecretly(expected, this.#claimed ?? "")) throw mismatch("a chunk");
    this.#previous = expected;
  }

  #onTrailer(line: string): void {
    if (line === "") {
      this.#checkTrailers();
      this.#state = "done";
      return;
    }
    const at = line.indexOf(":");
    const name = line.slice(0, Math.max(at, 0)).toLowerCase();
    const value = line.slice(at + 1).trim();
    if (!/^[a-z0-9-]+$/.test(name) || this.trailers.size >= TRAILER_LIMIT_COUNT) {
      throw new RequestRefusal(400, "MalformedTrailerError", "The trailing headers are not well-formed.");
    }
    if (name === "x-amz-trailer-signature") {
      if (this.#trailerSignature !== undefined) throw malformed("two signatures of the trailing headers");
      this.#trailerSignature = value;
      return;
    }
    if (this.trailers.has(name)) throw malformed("a trailing header appears twice");
    this.trailers.set(name, value);
    this.#canonicalTrailers += `${name}:${value}\n`;
  }

  #checkTrailers(): void {
    const { signer } = this.#options;
    if (signer === undefined) return;
    const digest = createHash("sha256").update(this.#canonicalTrailers, "latin1").digest("hex");
    const expected = trailerSignature(signer, this.#previous, digest);
    if (!equalSecretly(expected, this.#trailerSignature ?? "")) throw mismatch("the trailing headers");
  }
}

function malformed(what: string): RequestRefusal {
  return new RequestRefusal(400, "InvalidRequest", `The aws-chunked body is malformed: ${what}.`);
}

function mismatch(what: string): RequestRefusal {
  return new RequestRefusal(403, "SignatureDoesNotMatch", `The signature of ${what} does not match.`);
}
