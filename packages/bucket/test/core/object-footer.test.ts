import { describe, expect, it } from "vitest";
import { decodeFooter, encodeFooter, FOOTER_LIMIT_BYTES, footerBytes } from "../../src/core/object-footer.ts";

const footer = {
  etag: "d41d8cd98f00b204e9800998ecf8427e",
  sizeBytes: 7,
  headers: { "content-type": "text/plain", "x-amz-meta-é": '\u00e9"' },
};

describe("a footer", () => {
  it("is found from the end of the file and read back", () => {
    const bytes = encodeFooter(footer);
    expect(footerBytes(Buffer.concat([Buffer.from("content"), bytes]))).toBe(bytes.length);
    expect(decodeFooter(bytes, 7 + bytes.length)).toEqual(footer);
  });

  it("is not read when the sizes do not add up", () => {
    const bytes = encodeFooter(footer);
    expect(decodeFooter(bytes, 6 + bytes.length)).toBeUndefined();
  });

  it("is not found in a file that is cut short or foreign", () => {
    const bytes = encodeFooter(footer);
    expect(footerBytes(bytes.subarray(0, -1))).toBeUndefined();
    expect(footerBytes(new Uint8Array(3))).toBeUndefined();
    const long = Buffer.from(bytes);
    long.writeUInt32BE(FOOTER_LIMIT_BYTES + 1, long.length - 12);
    expect(footerBytes(long)).toBeUndefined();
  });

  it.each([
    ["no JSON", "x"],
    ["another shape", '{"etag":1}'],
    ["an unknown field", '{"etag":"d41d8cd98f00b204e9800998ecf8427e","sizeBytes":0,"headers":{},"more":1}'],
  ])("with %s is not read", (_, json) => {
    const bytes = Buffer.concat([Buffer.from(json), encodeFooter(footer).subarray(-12)]);
    expect(decodeFooter(bytes, bytes.length)).toBeUndefined();
  });
});
