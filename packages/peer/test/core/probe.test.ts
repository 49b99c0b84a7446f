import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { isProbeChallenge, probeText, signProbe, verifyProbe } from "../../src/core/probe.ts";
import { peerVectors } from "../support/peer-vectors.ts";

/** An Ed25519 private key from its seed (RFC 8410 §7). */
function privateKeyOf(seedHex: string) {
  const der = Buffer.from(`302e020100300506032b657004220420${seedHex}`, "hex");
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

test.each(peerVectors.probes)("vector $name: text and signature are the same, and verify", (one) => {
  expect(probeText(one)).toBe(one.payload);
  expect(signProbe(one, privateKeyOf(one.seedHex))).toBe(one.response.signature);
  expect(verifyProbe({ ...one.response, publicKeyHex: one.publicKeyHex })).toBe(true);
});

test.each(peerVectors.probes)("vector $name: anything else does not verify", ({ response, publicKeyHex }) => {
  const good = { ...response, publicKeyHex };
  const [other] = peerVectors.probes.filter((one) => one.publicKeyHex !== publicKeyHex);
  for (const change of [
    { node: "another" },
    { advertise: "10.0.0.13:8081" },
    { challenge: "0".repeat(64) },
    { signature: response.signature.toUpperCase() },
    { signature: response.signature.slice(2) },
    { signature: `00${response.signature.slice(2)}` },
    { publicKeyHex: other?.publicKeyHex ?? "" },
    { publicKeyHex: "" },
    { publicKeyHex: "ff".repeat(32) },
  ]) {
    expect(verifyProbe({ ...good, ...change }), JSON.stringify(change)).toBe(false);
  }
});

test("a fresh key signs what its public half verifies", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const publicKeyHex = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  const fields = { node: "a", advertise: "b:1", challenge: "0".repeat(64) };
  expect(verifyProbe({ ...fields, signature: signProbe(fields, privateKey), publicKeyHex })).toBe(true);
});

test.each([
  ["0".repeat(64), true],
  ["A".repeat(64), false],
  ["0".repeat(63), false],
  ["", false],
])("challenge %j: %s", (text, is) => {
  expect(isProbeChallenge(text)).toBe(is);
});
