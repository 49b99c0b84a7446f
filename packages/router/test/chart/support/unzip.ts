// One file out of a zip, so that no test needs a program for it.
import { inflateRawSync } from "node:zlib";

const END_OF_DIRECTORY = 0x06054b50;
const ENTRY = 0x02014b50;
const STORED = 0;

/** @see APPNOTE.TXT 6.3.10 of PKWARE: end of central directory 4.3.16, entries 4.3.12, local headers 4.3.7 */
export function unzip(archive: Buffer, name: string): Buffer {
  let end = archive.length - 22;
  while (end >= 0 && archive.readUInt32LE(end) !== END_OF_DIRECTORY) end -= 1;
  if (end < 0) throw new TypeError("no zip archive");
  let at = archive.readUInt32LE(end + 16);
  while (at < end && archive.readUInt32LE(at) === ENTRY) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((field) =>
      archive.readUInt16LE(at + field),
    );
    const nameEnd = at + 46 + (nameBytes ?? 0);
    if (archive.toString("utf8", at + 46, nameEnd) === name) {
      const local = archive.readUInt32LE(at + 42);
      const data = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
      const bytes = archive.subarray(data, data + archive.readUInt32LE(at + 20));
      return archive.readUInt16LE(at + 10) === STORED ? bytes : inflateRawSync(bytes);
    }
    at = nameEnd + (extraBytes ?? 0) + (commentBytes ?? 0);
  }
  throw new TypeError(`the archive has no ${name}`);
}
