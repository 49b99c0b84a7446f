// A certificate that signs itself and its key, made when a test needs them. Only what X.509 v3 demands (RFC 5280), in DER by hand, so
// that no tool of the machine is needed and dates can be chosen.
import { generateKeyPairSync, type KeyPairKeyObjectResult, randomBytes, sign } from "node:crypto";

/** A certificate and its key, PEM. */
export interface TestPair {
  cert: string;
  key: string;
}

/** What of a pair a test may choose. */
export interface TestPairOptions {
  name?: string;
  /** @default an hour ago */
  validFromMs?: number;
  /** @default in a day */
  validToMs?: number;
  /** Whose certificate it is; then it is signed with a key that nobody has. @default new ones, of P-256 */
  keys?: KeyPairKeyObjectResult;
}

const hourMs = 3_600_000;
const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));

/** A pair for 127.0.0.1. Trust its certificate to trust its server. */
export function makePair(options: TestPairOptions = {}): TestPair {
  const signer = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const {
    name = "toy",
    validFromMs = Date.now() - hourMs,
    validToMs = Date.now() + 24 * hourMs,
    keys: { publicKey, privateKey } = signer,
  } = options;
  const commonName = sequence(der(0x31, sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from(name)))));
  const address = sequence(der(0x87, Buffer.of(127, 0, 0, 1)));
  const tbs = sequence(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    ecdsaWithSha256,
    commonName,
    sequence(utcTime(validFromMs), utcTime(validToMs)),
    commonName,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(sequence(oid(0x55, 0x1d, 0x11), der(0x04, address)))),
  );
  const signature = sign("sha256", tbs, signer.privateKey);
  const whole = sequence(tbs, ecdsaWithSha256, der(0x03, Buffer.concat([Buffer.of(0), signature])));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
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

/** Years from 1950 to 2049. */
function utcTime(timeMs: number): Buffer {
  const digits = new Date(timeMs).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
