// Certificates made when a test needs them: a CA, and what it signs. Only what X.509 v3 demands (RFC 5280), in DER by hand, so that
// no tool of the machine is needed and dates can be chosen.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** A certificate and its key, PEM. */
export interface TestPair {
  cert: string;
  key: string;
}

/** What of a certificate a test may choose. */
export interface TestCertificateOptions {
  name?: string;
  /** @default an hour ago */
  validFromMs?: number;
  /** @default in a day */
  validToMs?: number;
}

const hourMs = 3_600_000;
const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));

/** A CA that a test trusts. */
export class TestCa {
  readonly cert: string;
  readonly #name: string;
  readonly #key: KeyObject;

  constructor(name = "cellkit test CA") {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#name = name;
    this.#key = privateKey;
    this.cert = this.#sign(publicKey, { name, isCa: true });
  }

  /** A pair for 127.0.0.1 and localhost. */
  issue(options: TestCertificateOptions = {}): TestPair {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const cert = this.#sign(publicKey, { name: "edge", ...options, isCa: false });
    return { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }) as string };
  }

  #sign(subjectKey: KeyObject, options: TestCertificateOptions & { name: string; isCa: boolean }): string {
    const { name, isCa, validFromMs = Date.now() - hourMs, validToMs = Date.now() + 24 * hourMs } = options;
    const basicConstraints = extension(
      [0x55, 0x1d, 0x13],
      sequence(...(isCa ? [der(0x01, Buffer.of(0xff))] : [])),
    );
    const names = sequence(der(0x87, Buffer.of(127, 0, 0, 1)), der(0x82, Buffer.from("localhost")));
    const tbs = sequence(
      der(0xa0, der(0x02, Buffer.of(2))),
      der(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
      ecdsaWithSha256,
      commonName(this.#name),
      sequence(utcTime(validFromMs), utcTime(validToMs)),
      commonName(name),
      subjectKey.export({ type: "spki", format: "der" }),
      der(0xa3, sequence(basicConstraints, extension([0x55, 0x1d, 0x11], names))),
    );
    const whole = sequence(
      tbs,
      ecdsaWithSha256,
      der(0x03, Buffer.concat([Buffer.of(0), sign("sha256", tbs, this.#key)])),
    );
    const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
  }
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const prefix = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...prefix), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(...bytes: number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function extension(id: number[], value: Buffer): Buffer {
  return sequence(oid(...id), der(0x04, value));
}

function commonName(name: string): Buffer {
  return sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(name)))));
}

/** Years from 1950 to 2049. */
function utcTime(timeMs: number): Buffer {
  const digits = new Date(timeMs).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
