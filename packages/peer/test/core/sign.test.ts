import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { canonicalText, signedTarget } from "../../src/core/canonical.ts";
import { peerHeader } from "../../src/core/constants.ts";
import { signRequest } from "../../src/core/sign.ts";
import { bodyBytes, keyOf, peerVectors } from "../support/peer-vectors.ts";

const vector = peerVectors.signing[0];
const key = keyOf("07".repeat(32));
const plain = {
  key,
  version: 5,
  method: "GET",
  target: "/peer/probe",
  source: "a",
  destination: "b",
  timeMs: 1,
  nonce: "0".repeat(32),
} as const;

test("the header names are those of the vectors", () => {
  const names = peerVectors.constants.headers;
  expect(Object.values(peerHeader).sort()).toEqual(Object.values(names).sort());
});

test.each(peerVectors.signing)("vector $name: the text and the seven headers are the same", (one) => {
  const headers = signRequest({
    key: keyOf(one.keyHex),
    version: one.protocolVersion,
    method: one.method,
    target: one.pathAndQuery,
    body: bodyBytes(one.body),
    source: one.source,
    destination: one.target,
    timeMs: BigInt(one.timestampMs),
    nonce: one.nonce,
  });
  expect(headers).toEqual(one.expected.headers);

  const text = canonicalText({
    version: one.protocolVersion,
    method: one.method,
    target: one.pathAndQuery,
    bodySha256: one.expected.bodySha256,
    source: one.source,
    destination: one.target,
    timestamp: one.timestampMs,
    nonce: one.nonce,
  });
  expect(text).toBe(one.expected.canonical);
  expect(createHash("sha256").update(text).digest("hex")).toBe(one.expected.canonicalSha256);
});

test("no body and an empty body sign the same", () => {
  expect(signRequest(plain)).toEqual(signRequest({ ...plain, body: new Uint8Array() }));
  expect(vector?.expected.bodySha256).toBe(signRequest(plain)[peerHeader.bodySha256]);
});

test.each([
  ["an origin form stays as it is", "/a%3Ab?x=%2f&x=", "/a%3Ab?x=%2f&x="],
  ["an escape is another path than the character", "/__do/a:b", "/__do/a:b"],
  ["an absolute form loses scheme and authority", "http://node-1:8081/a?b", "/a?b"],
  ["an absolute form without a path gets one", "http://node-1:8081?b", "/?b"],
  ["an absolute form of nothing is the root", "http://node-1", "/"],
  ["the question mark of an empty query stays", "/a?", "/a?"],
  ["a fragment goes", "/a?b#c", "/a?b"],
  ["the asterisk form stays", "*", "*"],
])("signed target: %s", (_rule, target, signed) => {
  expect(signedTarget(target)).toBe(signed);
});

test("a path and its escaped form sign differently", () => {
  const one = signRequest({ ...plain, target: "/__do/a%3Ab" });
  const other = signRequest({ ...plain, target: "/__do/a:b" });
  expect(one[peerHeader.signature]).not.toBe(other[peerHeader.signature]);
});

test.each([
  ["method", { method: "" }],
  ["method", { method: "GET\n/" }],
  ["target", { target: "" }],
  ["target", { target: "/a b" }],
  ["target", { target: "/a\nb" }],
  ["source", { source: "" }],
  ["source", { source: "a/b" }],
  ["source", { source: "a".repeat(129) }],
  ["destination", { destination: "b:1" }],
  ["timeMs", { timeMs: -1 }],
  ["timeMs", { timeMs: 1.5 }],
  ["timeMs", { timeMs: Number.NaN }],
  ["timeMs", { timeMs: 2n ** 64n }],
  ["nonce", { nonce: "A".repeat(32) }],
  ["nonce", { nonce: "0".repeat(31) }],
])("a wrong %s cannot be signed", (option, change) => {
  expect(() => signRequest({ ...plain, ...change })).toThrow(
    expect.objectContaining({ code: "CELLKIT_PEER_OPTION", option }),
  );
});
