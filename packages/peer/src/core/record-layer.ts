// Records (docs/protocol/records.md, "Records"): a byte stream cut into pieces, each sealed with AES-256-GCM under a
// nonce that is its number in the stream. A piece that is changed, left out, sent twice or moved fails to open, and
// nothing after it is read. An empty piece is the end of the stream, so that a cut is never taken for an end.
//
//   length   3 bytes, big endian: bytes that follow, 16 to 65,552; authenticated as additional data
//   sealed   as many bytes as there is plaintext (none: the end record)
//   tag      16 bytes
import { createCipheriv, createDecipheriv } from "node:crypto";
import { PeerRecordError } from "../errors.ts";
import { type DirectionKeys, ivBytes, nextDirectionKeys } from "./record-keys.ts";

/** Most plaintext bytes in a record: what one read of a socket gives. */
export const maxRecordPlaintextBytes = 65_536;

/** Bytes of a record's length field. */
export const recordHeaderBytes = 3;

/** Bytes of a record's authentication tag. */
export const recordTagBytes = 16;

/**
 * After so many records a direction changes its key. A key then seals at most 64 GiB: 2^32 blocks, well under the 2^34.5
 * that RFC 8446 §5.5 gives AES-GCM.
 */
const recordsPerKey = 2 ** 20;

/** Records that one direction may carry; at 1,000,000 a second that is nine years. */
export const maxRecordCount = 2 ** 48;

/** Up to here a record is put together in one buffer; above it, copying costs more than one more write. */
const joinedBytes = 16_384;

const algorithm = "aes-256-gcm";
const decipherOptions = { authTagLength: recordTagBytes };
const noBytes = new Uint8Array();

/** Header of the record that is being sealed, of whatever tunnel: OpenSSL reads it when it is given. */
const sealedHeader = Buffer.alloc(recordHeaderBytes);

/** For tests: a place to start, and a shorter life of a key. */
export interface RecordCounters {
  /** @default 0 */
  readonly firstRecord?: number;
  /** @default 2^20 */
  readonly recordsPerKey?: number;
}

/** Number, key and nonce of the next record of one direction. */
class RecordSequence {
  #keys: DirectionKeys;
  #number: number;
  readonly #perKey: number;

  constructor(keys: DirectionKeys, counters: RecordCounters = {}) {
    this.#keys = keys;
    this.#number = counters.firstRecord ?? 0;
    this.#perKey = counters.recordsPerKey ?? recordsPerKey;
  }

  /** Takes the next number. @throws PeerRecordError `sequence-limit` */
  next(): { readonly key: DirectionKeys["key"]; readonly nonce: Buffer } {
    const number = this.#number;
    if (number >= maxRecordCount) {
      throw new PeerRecordError(
        "sequence-limit",
        `a tunnel carries at most ${maxRecordCount} records each way`,
      );
    }
    if (number > 0 && number % this.#perKey === 0) this.#keys = nextDirectionKeys(this.#keys);
    this.#number = number + 1;
    // One of its own for each record: an idle tunnel keeps none, and no two records can share one by mistake.
    const nonce = Buffer.allocUnsafe(ivBytes);
    nonce.set(this.#keys.iv);
    const upper = Math.floor(number / 2 ** 32);
    nonce.writeUInt32BE((nonce.readUInt32BE(4) ^ upper) >>> 0, 4);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ (number % 2 ** 32)) >>> 0, 8);
    return { key: this.#keys.key, nonce };
  }
}

/** Seals what one end sends. */
export class RecordSealer {
  readonly #sequence: RecordSequence;
  #ended = false;

  /** @param keys of the direction in which this end sends */
  constructor(keys: DirectionKeys, counters?: RecordCounters) {
    this.#sequence = new RecordSequence(keys, counters);
  }

  /**
   * Seals bytes into as many records as they need (one up to 64 KiB, none for no bytes). The answer is to be written in
   * order; it shares no memory with `bytes`.
   *
   * @throws PeerRecordError CELLKIT_PEER_RECORD `ended` after {@link end}, `sequence-limit` after 2^48 records
   */
  seal(bytes: Uint8Array): Uint8Array[] {
    if (this.#ended) throw new PeerRecordError("ended", "bytes were to be sealed after the end record");
    const parts: Uint8Array[] = [];
    for (let from = 0; from < bytes.length; from += maxRecordPlaintextBytes) {
      const to = Math.min(bytes.length, from + maxRecordPlaintextBytes);
      this.#sealOne(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to), parts);
    }
    return parts;
  }

  /** The end record: the last bytes to write. @throws PeerRecordError as {@link seal} */
  end(): Uint8Array {
    if (this.#ended) throw new PeerRecordError("ended", "a second end record was to be sealed");
    this.#ended = true;
    const parts: Uint8Array[] = [];
    this.#sealOne(noBytes, parts);
    return parts.length === 1 ? (parts[0] ?? noBytes) : Buffer.concat(parts);
  }

  #sealOne(plaintext: Uint8Array, parts: Uint8Array[]): void {
    const { key, nonce } = this.#sequence.next();
    const isJoined = plaintext.length <= joinedBytes;
    const record = Buffer.allocUnsafe(
      isJoined ? recordHeaderBytes + plaintext.length + recordTagBytes : recordHeaderBytes,
    );
    sealedHeader.writeUIntBE(plaintext.length + recordTagBytes, 0, recordHeaderBytes);
    record.set(sealedHeader);
    const cipher = createCipheriv(algorithm, key, nonce);
    cipher.setAAD(sealedHeader);
    const sealed = cipher.update(plaintext);
    cipher.final();
    const tag = cipher.getAuthTag();
    if (isJoined) {
      record.set(sealed, recordHeaderBytes);
      record.set(tag, recordHeaderBytes + sealed.length);
      parts.push(record);
    } else parts.push(record, sealed, tag);
  }
}

/** Opens what one end receives. */
export class RecordOpener {
  readonly #sequence: RecordSequence;
  readonly #header = Buffer.alloc(recordHeaderBytes);
  /** Bytes of the header that came so far, while the header is not whole. */
  #headerHave = 0;
  /** The record whose rest is still to come, undefined while its header is not whole. */
  #record: Buffer | undefined;
  #recordHave = 0;
  #ended = false;
  #failed = false;

  /** @param keys of the direction in which the other end sends */
  constructor(keys: DirectionKeys, counters?: RecordCounters) {
    this.#sequence = new RecordSequence(keys, counters);
  }

  /** Whether the end record came. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Takes the next bytes from the wire, cut anywhere, and answers the plaintext of the records that are whole with them.
   * Holds at most one record; keeps no reference to `chunk`.
   *
   * @throws PeerRecordError CELLKIT_PEER_RECORD `length`, `authentication`, `after-end`, `sequence-limit`; from then on
   *   always, with `failed`
   */
  push(chunk: Uint8Array): { readonly data: Uint8Array[]; readonly ended: boolean } {
    if (this.#failed) throw new PeerRecordError("failed", "the stream of records failed before");
    const data: Uint8Array[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (this.#ended) this.#fail("after-end", "bytes follow the end record");
      at =
        this.#record === undefined ? this.#startRecord(chunk, at, data) : this.#fillRecord(chunk, at, data);
    }
    return { data, ended: this.#ended };
  }

  /**
   * To be called when the connection ends.
   *
   * @throws PeerRecordError CELLKIT_PEER_RECORD `truncated` when the end record did not come
   */
  finish(): void {
    if (this.#failed) throw new PeerRecordError("failed", "the stream of records failed before");
    if (!this.#ended) this.#fail("truncated", "the connection ended before the end record");
  }

  /** Reads a header, and the record behind it when it is whole; answers where it stopped. */
  #startRecord(chunk: Uint8Array, from: number, data: Uint8Array[]): number {
    let at = from;
    while (this.#headerHave < recordHeaderBytes && at < chunk.length) {
      this.#header[this.#headerHave] = chunk[at] ?? 0;
      this.#headerHave += 1;
      at += 1;
    }
    if (this.#headerHave < recordHeaderBytes) return at;
    const length = this.#header.readUIntBE(0, recordHeaderBytes);
    if (length < recordTagBytes || length > maxRecordPlaintextBytes + recordTagBytes) {
      this.#fail("length", `a record of ${length} bytes was announced`);
    }
    if (chunk.length - at >= length) {
      this.#open(chunk, at, at + length, data);
      return at + length;
    }
    this.#record = Buffer.allocUnsafe(length);
    this.#recordHave = 0;
    return at;
  }

  #fillRecord(chunk: Uint8Array, from: number, data: Uint8Array[]): number {
    const record = this.#record ?? Buffer.alloc(0);
    const to = Math.min(chunk.length, from + record.length - this.#recordHave);
    record.set(chunk.subarray(from, to), this.#recordHave);
    this.#recordHave += to - from;
    if (this.#recordHave === record.length) {
      this.#record = undefined;
      this.#open(record, 0, record.length, data);
    }
    return to;
  }

  #open(bytes: Uint8Array, from: number, to: number, data: Uint8Array[]): void {
    const tagAt = to - recordTagBytes;
    const { key, nonce } = this.#next();
    const decipher = createDecipheriv(algorithm, key, nonce, decipherOptions);
    decipher.setAAD(this.#header);
    decipher.setAuthTag(bytes.subarray(tagAt, to));
    const plaintext = decipher.update(bytes.subarray(from, tagAt));
    try {
      decipher.final();
    } catch (cause) {
      this.#fail("authentication", "a record is not what the other end sealed", { cause });
    }
    this.#headerHave = 0;
    if (tagAt === from) this.#ended = true;
    else data.push(plaintext);
  }

  #next(): ReturnType<RecordSequence["next"]> {
    try {
      return this.#sequence.next();
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }

  #fail(fault: PeerRecordError["fault"], problem: string, options?: ErrorOptions): never {
    this.#failed = true;
    throw new PeerRecordError(fault, problem, options);
  }
}
