// What is a pair, and what is not.
import { generateKeyPairSync } from "node:crypto";
import { rm } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CertificateFileError,
  certificateDateProblem,
  certificateTlsOptions,
  readCertificate,
} from "../src/index.ts";
import { PairFiles } from "./support/pair-files.ts";
import { makePair } from "./support/test-pair.ts";

const pair = makePair();
const other = makePair();
let files: PairFiles;
beforeEach(async () => {
  files = await PairFiles.with(pair);
});
afterEach(() => files[Symbol.asyncDispose]());

it("a pair is read with its dates, names and fingerprint", async () => {
  const validToMs = Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000;
  await files.write(makePair({ validToMs }));
  const read = await readCertificate(files.pair);
  expect(read).toMatchObject({
    validToMs,
    names: "IP Address:127.0.0.1",
    fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/),
    clientCa: undefined,
  });
  expect(certificateDateProblem(read, Date.now())).toBeUndefined();
  expect(certificateDateProblem(read, validToMs)).toBe(`expired at ${new Date(validToMs).toISOString()}`);
  expect(certificateDateProblem(read, read.validFromMs - 1)).toBe(
    `is not valid before ${new Date(read.validFromMs).toISOString()}`,
  );
});

it("one that has expired is read as well: whether it may be used is its reader's to say", async () => {
  await files.write(makePair({ validToMs: Date.now() - 1_000 }));
  expect(certificateDateProblem(await readCertificate(files.pair), Date.now())).toMatch(/^expired at /);
});

it("a listener gets TLS 1.3 and HTTP/1.1 alone, and asks clients for a certificate where there is a CA of theirs", async () => {
  const { cert, key } = await readCertificate(files.pair);
  const alone = certificateTlsOptions(await readCertificate(files.pair));
  expect(alone).toEqual({
    ...{ cert, key, minVersion: "TLSv1.3", ALPNProtocols: ["http/1.1"] },
    ...{ requestCert: false, rejectUnauthorized: false },
  });
  await files.write({ clientCa: other.cert });
  expect(certificateTlsOptions(await readCertificate(files.paths))).toEqual({
    ...{ ...alone, ca: Buffer.from(other.cert) },
    ...{ requestCert: true, rejectUnauthorized: true },
  });
});

describe("an error tells the path, and nothing of the content:", () => {
  it.each<[string, () => Promise<void>, RegExp]>([
    ["an absent certificate", () => rm(files.paths.certPath), /tls\.crt cannot be read \(ENOENT\)$/],
    ["an absent key", () => rm(files.paths.keyPath), /tls\.key cannot be read \(ENOENT\)$/],
    [
      "a certificate that is none",
      () => files.write({ cert: "hello" }),
      /tls\.crt is not a PEM certificate$/,
    ],
    ["a key that is none", () => files.write({ key: "secret-text" }), /tls\.key is not a PEM private key/],
    [
      "a key with a passphrase",
      () => {
        const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
        const locked = { cipher: "aes-256-cbc", passphrase: "secret-text" };
        const key = privateKey.export({ type: "pkcs8", format: "pem", ...locked }) as string;
        return files.write({ key });
      },
      /tls\.key is not a PEM private key without a passphrase$/,
    ],
    [
      "a certificate and the key of another",
      () => files.write({ key: other.key }),
      /tls\.crt does not belong to the key .*tls\.key$/,
    ],
    [
      "a certificate and a key of another kind",
      () => {
        const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
        return files.write({ key: privateKey.export({ type: "pkcs8", format: "pem" }) as string });
      },
      /tls\.crt does not belong to the key .*tls\.key$/,
    ],
    [
      "a pair that OpenSSL holds too weak",
      () => files.write(makePair({ keys: generateKeyPairSync("rsa", { modulusLength: 512 }) })),
      /tls\.crt cannot be used with the key .*tls\.key \(ERR_SSL_EE_KEY_TOO_SMALL\)$/,
    ],
    [
      "a chain that is broken behind its first certificate",
      () => files.write({ cert: `${pair.cert}${other.cert.replace("MII", "AAAA")}` }),
      /tls\.crt cannot be used with the key .*tls\.key \(ERR_OSSL_[A-Z0-9_]+\)$/,
    ],
    [
      "a file of more than 1 MiB",
      () => files.write({ cert: "a".repeat(1_048_577) }),
      /tls\.crt is longer than 1048576 bytes$/,
    ],
    [
      "the first of two, although it takes longer to find",
      async () => {
        await files.write({ cert: "x".repeat(1_048_577) });
        await rm(files.paths.keyPath);
      },
      /tls\.crt is longer than 1048576 bytes$/,
    ],
    ["a pipe", () => files.replaceByPipe(files.paths.certPath), /tls\.crt is no plain file$/],
    ["a device", () => files.replaceByDevice(files.paths.keyPath), /tls\.key is no plain file$/],
    ["a key for a certificate", () => files.write({ cert: pair.key }), /tls\.crt is not a PEM certificate$/],
    ["a client CA that is none", () => files.write({ clientCa: "x" }), /ca\.crt is not a PEM certificate$/],
    ["a client CA that is absent", () => rm(files.paths.clientCaPath), /ca\.crt cannot be read \(ENOENT\)$/],
  ])("%s", async (_, spoil, message) => {
    await files.write({ clientCa: other.cert });
    await spoil();
    const error = await readCertificate(files.paths).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CertificateFileError);
    const { message: text, path, problem } = error as CertificateFileError;
    expect(text).toMatch(message);
    expect(text).toBe(`the certificate cannot be used: ${path} ${problem}`);
    expect(text).not.toMatch(/secret-text|BEGIN/);
  });
});
