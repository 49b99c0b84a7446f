// The primitives under signatures and records, with the calls of node:crypto that src/core makes, against vectors that
// were made to find mistakes in implementations.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";

const hex = z.string().transform((text) => Buffer.from(text, "hex"));
const head = { tcId: z.number(), comment: z.string(), result: z.enum(["valid", "invalid"]) };

/** Groups of a file after its hash was compared with the one in the README next to it. */
function groups<Test extends z.ZodType>(file: string, sha256: string, each: Test) {
  const bytes = readFileSync(new URL(`./vectors/wycheproof/${file}`, import.meta.url));
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(sha256);
  const group = z.object({
    keySize: z.number().optional(),
    ivSize: z.number().optional(),
    tagSize: z.number().optional(),
    tests: z.array(each),
  });
  const { numberOfTests, testGroups } = z
    .object({ numberOfTests: z.number(), testGroups: z.array(group) })
    .parse(JSON.parse(bytes.toString("utf8")));
  expect(testGroups.flatMap(({ tests }) => tests)).toHaveLength(numberOfTests);
  return testGroups;
}

const mac = z.object({ ...head, key: hex, msg: hex, tag: hex });
const macFile = "hmac_sha256_test.json";
const macHash = "2d201cfa61d1bf95e6f5d07d96634b4a348b31e8eaa277ad7c8d09677b7a743f";

test("HMAC-SHA-256: every tag is made, and every false one is different", () => {
  let count = 0;
  for (const { tagSize = 256, tests } of groups(macFile, macHash, mac)) {
    for (const { tcId, comment, key, msg, tag, result } of tests) {
      const whole = createHmac("sha256", createSecretKey(key)).update(msg).digest();
      const isSame = whole.subarray(0, tagSize / 8).equals(tag);
      expect(isSame, `${tcId} ${comment}`).toBe(result === "valid");
      count += 1;
    }
  }
  expect(count).toBe(174);
});

const derivation = z.object({ ...head, ikm: hex, salt: hex, info: hex, size: z.number(), okm: hex });
const derivationFile = "hkdf_sha256_test.json";
const derivationHash = "bb2b462a38b251cb52a2aede706d6d4b62b26864f4e80c95497507ddb07c5f1e";

test("HKDF-SHA-256: every key is derived, and what is too long is refused", () => {
  let count = 0;
  for (const { tests } of groups(derivationFile, derivationHash, derivation)) {
    for (const { tcId, comment, ikm, salt, info, size, okm, result } of tests) {
      const derive = () => Buffer.from(hkdfSync("sha256", createSecretKey(ikm), salt, info, size));
      if (result === "valid") expect(derive().equals(okm), `${tcId} ${comment}`).toBe(true);
      else expect(derive, `${tcId} ${comment}`).toThrow();
      count += 1;
    }
  }
  expect(count).toBe(86);
});

const sealed = z.object({ ...head, key: hex, iv: hex, aad: hex, msg: hex, ct: hex, tag: hex });
const sealedFile = "aes_gcm_test.json";
const sealedHash = "985e5ecc172e181eaf49e89508b9470dcf478002eb7e8559c707eb42dc97dfe7";

/** OpenSSL takes no longer nonce than this; three vectors have one of 257 bytes. A record's has 12. */
const maxNonceBits = 1_024;

test("AES-GCM: every message is sealed and opened, and every false one is refused", () => {
  let [count, tooLong] = [0, 0];
  for (const { keySize, ivSize = 96, tests } of groups(sealedFile, sealedHash, sealed)) {
    const algorithm = `aes-${keySize}-gcm` as "aes-256-gcm";
    for (const { tcId, comment, key, iv, aad, msg, ct, tag, result } of tests) {
      const secret = createSecretKey(key);
      const open = () => {
        const decipher = createDecipheriv(algorithm, secret, iv, { authTagLength: 16 });
        decipher.setAAD(aad);
        decipher.setAuthTag(tag);
        return Buffer.concat([decipher.update(ct), decipher.final()]);
      };
      if (ivSize > maxNonceBits) {
        expect(open, `${tcId} ${comment}`).toThrow("Invalid initialization vector");
        tooLong += 1;
      } else if (result === "valid") {
        expect(open().equals(msg), `${tcId} ${comment}`).toBe(true);
        const cipher = createCipheriv(algorithm, secret, iv);
        cipher.setAAD(aad);
        const again = Buffer.concat([cipher.update(msg), cipher.final(), cipher.getAuthTag()]);
        expect(again.equals(Buffer.concat([ct, tag])), `${tcId} ${comment}`).toBe(true);
      } else expect(open, `${tcId} ${comment}`).toThrow();
      count += 1;
    }
  }
  expect({ count, tooLong }).toEqual({ count: 316, tooLong: 3 });
});
