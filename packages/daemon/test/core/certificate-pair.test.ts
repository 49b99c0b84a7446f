import { expect, it } from "vitest";
import { type CertificatePair, certificateAge, isSamePair } from "../../src/core/certificate-pair.ts";

const dayMs = 86_400_000;

it.each([
  [-1, "early"],
  [0, "good"],
  [76 * dayMs, "good"],
  [76 * dayMs + 1, "ending"],
  [90 * dayMs - 1, "ending"],
  [90 * dayMs, "expired"],
] as const)("of a certificate of 90 days, the moment %i is %s", (nowMs, age) => {
  expect(certificateAge({ validFromMs: 0, validToMs: 90 * dayMs }, nowMs)).toBe(age);
});

function pairOf(parts: { cert?: string; key?: string; clientCa?: string }): CertificatePair {
  const { cert = "cert", key = "key", clientCa } = parts;
  return {
    ...{ cert: Buffer.from(cert), key: Buffer.from(key) },
    clientCa: clientCa === undefined ? undefined : Buffer.from(clientCa),
    ...{ validFromMs: 0, validToMs: 0, names: undefined, fingerprint: "" },
  };
}

it.each([
  [{}, {}, true],
  [{ clientCa: "ca" }, { clientCa: "ca" }, true],
  [{}, { cert: "x" }, false],
  [{}, { key: "x" }, false],
  [{}, { clientCa: "ca" }, false],
  [{ clientCa: "ca" }, {}, false],
  [{ clientCa: "ca" }, { clientCa: "x" }, false],
])("%o and %o: the same is %s", (a, b, isSame) => {
  expect(isSamePair(pairOf(a), pairOf(b))).toBe(isSame);
});
