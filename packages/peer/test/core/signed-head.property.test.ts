// What a stranger sends is refused, never an exception; what was signed is accepted, and nothing that differs from it.
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { peerHeader } from "../../src/core/constants.ts";
import { parseTimestamp, readSignedHead } from "../../src/core/signed-head.ts";
import { RequestVerifier } from "../../src/core/verifier.ts";
import { fleetKey, nonceOf, nowMs, self, signedRequest } from "../support/signed.ts";

const fuzzing = { numRuns: inject("size") === "long" ? 100_000 : 2_000, seed: inject("seed") };
const names = Object.values(peerHeader);
const good = Object.fromEntries(signedRequest().headers);

const value = fc.oneof(
  fc.constantFrom(...Object.values(good)),
  fc.constantFrom("", "2", "5", "05", "a", self, String(nowMs), nonceOf(1), "0".repeat(64), "\n", "é"),
  fc.string({ maxLength: 70, unit: "binary" }),
);
const name = fc.oneof(
  fc.constantFrom(...names, ...names.map((one) => one.toUpperCase())),
  fc.constantFrom("host", "x-cells-peer-", "__proto__", "constructor", ""),
  fc.string({ maxLength: 30 }),
);
const headers = fc.array(fc.tuple(name, value), { maxLength: 12 });
const line = fc.record({
  method: fc.oneof(fc.constant("GET"), fc.string()),
  target: fc.oneof(fc.constant("/peer/probe"), fc.string()),
});

test("headers that nobody signed are refused, whatever they are", () => {
  const verifier = new RequestVerifier({ keys: [fleetKey], version: 5, self });
  const property = fc.property(headers, line, (pairs, { method, target }) => {
    // All seven of the good ones, once each, would be the good request.
    fc.pre(
      !names.every((one) => pairs.some(([given, text]) => given.toLowerCase() === one && text === good[one])),
    );
    const request = { method, target, headers: pairs };
    for (const verdict of [verifier.verify(request, nowMs), verifier.verifyHead(request, nowMs)]) {
      expect(verdict.ok).toBe(false);
      if (!verdict.ok) expect([401, 426]).toContain(verdict.status);
    }
  });
  fc.assert(property, fuzzing);
});

test("a signed request is accepted, and one that differs in a single place is not", () => {
  const verifier = new RequestVerifier({ keys: [fleetKey], version: 5, self });
  let count = 0;
  const property = fc.property(
    fc.record({
      method: fc.constantFrom("GET", "POST", "X-CELL"),
      target: fc.webPath().map((path) => (path === "" ? "/" : path)),
      source: fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/),
      body: fc.uint8Array({ maxLength: 40 }),
      skewMs: fc.integer({ min: -30_000, max: 30_000 }),
    }),
    fc.constantFrom("method", "target", "body", ...names),
    fc.nat(),
    ({ method, target, source, body, skewMs }, part, place) => {
      count += 1;
      const request = signedRequest({
        method,
        target,
        source,
        body,
        timeMs: nowMs + skewMs,
        nonce: nonceOf(count),
      });
      const changed =
        part === "method" || part === "target"
          ? { ...request, [part]: differs(request[part], place) }
          : part === "body"
            ? { ...request, body: Buffer.from(`${Buffer.from(body).toString("latin1")}x`, "latin1") }
            : {
                ...request,
                headers: request.headers.map(
                  ([key, text]) => [key, key === part ? differs(text, place) : text] as const,
                ),
              };
      expect(verifier.verify(changed, nowMs).ok).toBe(false);
      expect(verifier.verify(request, nowMs)).toEqual({ ok: true, source });
    },
  );
  fc.assert(property, fuzzing);
});

/** The text with one character replaced by its neighbour in ASCII. */
function differs(text: string, place: number): string {
  const index = place % text.length;
  const code = text.charCodeAt(index);
  return `${text.slice(0, index)}${String.fromCharCode(code === 0x7a ? code - 1 : code + 1)}${text.slice(index + 1)}`;
}

test("reading a head finds each value once, or not at all", () => {
  const property = fc.property(headers, (pairs) => {
    const head = readSignedHead(pairs);
    for (const [field, headerName] of Object.entries(peerHeader)) {
      const values = pairs.filter(([given]) => given.toLowerCase() === headerName).map(([, text]) => text);
      expect(head[field as keyof typeof peerHeader]).toBe(values.length === 1 ? values[0] : undefined);
    }
  });
  fc.assert(property, fuzzing);
});

test("a timestamp is read exactly when it is the plain form of an unsigned 64-bit number", () => {
  const digits = fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String),
    fc.stringMatching(/^[+-]?[0-9]{0,22}$/),
    fc.string({ maxLength: 22 }),
  );
  const property = fc.property(digits, (text) => {
    const isPlain = /^\d+$/.test(text) && String(BigInt(text)) === text && text.length <= 20;
    expect(parseTimestamp(text)).toBe(isPlain ? Number(text) : undefined);
  });
  fc.assert(property, fuzzing);
});
