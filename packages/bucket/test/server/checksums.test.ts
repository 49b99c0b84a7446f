import { describe, expect, it } from "vitest";
import { Checksum, isChecksumHeader } from "../../src/server/checksums.ts";

const CHECK = Buffer.from("123456789");

describe("a checksum", () => {
  // The check values of the CRC catalogue and of the RFCs.
  it.each([
    ["x-amz-checksum-crc32", "cbf43926"],
    ["x-amz-checksum-crc32c", "e3069283"],
    ["x-amz-checksum-crc64nvme", "ae8b14860a799888"],
    ["x-amz-checksum-sha1", "f7c3bc1d808e04732adf679965ccc34ca7ae3441"],
    ["x-amz-checksum-sha256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"],
    ["content-md5", "25f9e794323b453885f5181f1b624d0b"],
  ])("%s has its published check value, whole or in parts", async (name, hex) => {
    expect(isChecksumHeader(name)).toBe(true);
    const claimed = Buffer.from(hex, "hex").toString("base64");
    for (const cut of [0, 1, 5]) {
      const checksum = await Checksum.create(name);
      checksum.update(CHECK.subarray(0, cut));
      checksum.update(CHECK.subarray(cut));
      expect(() => checksum.check(claimed)).not.toThrow();
    }
    const wrong = await Checksum.create(name);
    wrong.update(CHECK.subarray(1));
    expect(() => wrong.check(claimed)).toThrow(expect.objectContaining({ s3Code: "BadDigest" }));
    const missing = await Checksum.create(name);
    expect(() => missing.check(undefined)).toThrow(expect.objectContaining({ s3Code: "InvalidDigest" }));
  });

  it("that runs beside another of its kind keeps its own state", async () => {
    const [one, two] = [
      await Checksum.create("x-amz-checksum-crc32"),
      await Checksum.create("x-amz-checksum-crc32"),
    ];
    one.update(CHECK.subarray(0, 4));
    two.update(Buffer.from("other"));
    one.update(CHECK.subarray(4));
    expect(() => one.check(Buffer.from("cbf43926", "hex").toString("base64"))).not.toThrow();
  });

  it("of an unknown kind is refused", async () => {
    await expect(Checksum.create("x-amz-checksum-md6")).rejects.toMatchObject({ s3Code: "NotImplemented" });
    expect(isChecksumHeader("constructor")).toBe(false);
  });
});
