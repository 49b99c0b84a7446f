/** The checksums that S3 clients send: as a header, or after an aws-chunked body. */
import { createHash } from "node:crypto";
import { createCRC32, createCRC64 } from "hash-wasm";
import { RequestRefusal } from "../errors.ts";

/** CRC-32C (Castagnoli), reflected. */
const CRC32C_POLYNOMIAL = 0x82f63b78;
/** CRC-64/NVME, reflected. */
const CRC64NVME_POLYNOMIAL = "9a6c9329ac4bc9b5";

/** Takes bytes and answers the digest in hex. */
interface Hasher {
  update(bytes: Uint8Array): unknown;
  digest(encoding: "hex"): string;
}

const HASHERS: Readonly<Record<string, () => Hasher | Promise<Hasher>>> = {
  "x-amz-checksum-crc32": () => createCRC32().then((crc) => crc.init()),
  "x-amz-checksum-crc32c": () => createCRC32(CRC32C_POLYNOMIAL).then((crc) => crc.init()),
  "x-amz-checksum-crc64nvme": () => createCRC64(CRC64NVME_POLYNOMIAL).then((crc) => crc.init()),
  "x-amz-checksum-sha1": () => createHash("sha1"),
  "x-amz-checksum-sha256": () => createHash("sha256"),
  "content-md5": () => createHash("md5"),
};

/** Whether a header carries a checksum of the body. */
export function isChecksumHeader(name: string): boolean {
  return Object.hasOwn(HASHERS, name);
}

/** One checksum that the body must have. */
export class Checksum {
  readonly name: string;
  readonly #hasher: Hasher;

  private constructor(name: string, hasher: Hasher) {
    this.name = name;
    this.#hasher = hasher;
  }

  /** @throws RequestRefusal NotImplemented for an algorithm that is not known */
  static async create(name: string): Promise<Checksum> {
    const make = isChecksumHeader(name) ? HASHERS[name] : undefined;
    if (make === undefined)
      throw new RequestRefusal(501, "NotImplemented", `This server does not know ${name}.`);
    return new Checksum(name, await make());
  }

  update(bytes: Uint8Array): void {
    this.#hasher.update(bytes);
  }

  /** @param claimed base64, as the client sent it. @throws RequestRefusal BadDigest, InvalidDigest */
  check(claimed: string | undefined): void {
    const actual = Buffer.from(this.#hasher.digest("hex"), "hex");
    const bytes = Buffer.from(claimed ?? "", "base64");
    if (bytes.length !== actual.length) {
      throw new RequestRefusal(400, "InvalidDigest", `${this.name} is missing or not valid.`);
    }
    if (!bytes.equals(actual)) {
      throw new RequestRefusal(400, "BadDigest", `${this.name} does not match the body that was received.`);
    }
  }
}
