/**
 * An object's file is its content followed by a footer, so that one rename publishes both at once:
 * `content | JSON | length of the JSON (4 bytes, big endian) | "cellkit1"`. The sizes must add up to the file's size.
 */
import { z } from "zod";

/** Bytes after the JSON. */
const TRAILER_BYTES = 12;
/** The longest accepted JSON: S3 allows 2 KiB of user metadata and 8 KiB of headers. */
export const FOOTER_LIMIT_BYTES = 16 * 1024;
const MAGIC = "cellkit1";

const footerSchema = z.strictObject({
  etag: z.string().regex(/^[0-9a-f]{32}(-[1-9][0-9]{0,4})?$/),
  sizeBytes: z.int().min(0),
  headers: z.record(z.string(), z.string()),
});

/** What is known of an object besides its content. */
export interface Footer {
  /** Without quotes: MD5 of the content in hex; of a multipart object the MD5 of the parts' MD5s, `-` and their number. */
  etag: string;
  /** Of the content. */
  sizeBytes: number;
  /** Names in lower case: content-type and its like, `x-amz-meta-…`, and the checksum that the writer sent. */
  headers: Readonly<Record<string, string>>;
}

/** The bytes to append to the content. */
export function encodeFooter(footer: Footer): Uint8Array {
  const { etag, sizeBytes, headers } = footer;
  const json = Buffer.from(JSON.stringify({ etag, sizeBytes, headers }), "utf8");
  const bytes = Buffer.alloc(json.length + TRAILER_BYTES);
  json.copy(bytes);
  bytes.writeUInt32BE(json.length, json.length);
  bytes.write(MAGIC, json.length + 4, "latin1");
  return bytes;
}

/** How many bytes at the end of a file hold its footer, or undefined when the file does not end as ours do. */
export function footerBytes(trailer: Uint8Array): number | undefined {
  if (trailer.length < TRAILER_BYTES) return undefined;
  const bytes = Buffer.from(trailer.buffer, trailer.byteOffset, trailer.byteLength).subarray(-TRAILER_BYTES);
  if (bytes.toString("latin1", 4) !== MAGIC) return undefined;
  const length = bytes.readUInt32BE(0);
  return length > FOOTER_LIMIT_BYTES ? undefined : length + TRAILER_BYTES;
}

/** Reads a footer, or answers undefined when it is damaged or the sizes do not add up. */
export function decodeFooter(footer: Uint8Array, fileBytes: number): Footer | undefined {
  const json = Buffer.from(footer.buffer, footer.byteOffset, footer.byteLength - TRAILER_BYTES).toString(
    "utf8",
  );
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const parsed = footerSchema.safeParse(value);
  if (!parsed.success || parsed.data.sizeBytes + footer.byteLength !== fileBytes) return undefined;
  return parsed.data;
}
