import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { ChunkedBody, type ChunkedBodyOptions } from "../../src/core/chunked-body.ts";
import { chunkSignature, signingKey, trailerSignature } from "../../src/core/sigv4.ts";
import { everySplit } from "../support/split.ts";

const signer = {
  key: signingKey("secret", "20300101", "us-east-1"),
  timestamp: "20300101T000000Z",
  region: "us-east-1",
  seed: "a".repeat(64),
};
const sha256 = (text: string) => createHash("sha256").update(text, "latin1").digest("hex");

/** An aws-chunked body, signed chunk by chunk if asked. */
function encode(
  chunks: readonly string[],
  options: { signed?: boolean; trailers?: readonly string[] },
): string {
  let previous = signer.seed;
  let text = "";
  for (const chunk of [...chunks, ""]) {
    previous = chunkSignature(signer, previous, sha256(chunk));
    const signature = options.signed ? `;chunk-signature=${previous}` : "";
    text += `${chunk.length.toString(16)}${signature}\r\n${chunk}${chunk === "" ? "" : "\r\n"}`;
  }
  const { trailers } = options;
  if (trailers === undefined) return `${text}\r\n`;
  const canonical = trailers.map((line) => `${line}\n`).join("");
  const signature = options.signed
    ? `x-amz-trailer-signature:${trailerSignature(signer, previous, sha256(canonical))}\r\n`
    : "";
  return `${text}${trailers.map((line) => `${line}\r\n`).join("")}${signature}\r\n`;
}

/** Runs the decoder over pieces and answers data and trailers, or the code of its refusal. */
function decode(pieces: readonly Uint8Array[], options: ChunkedBodyOptions): unknown {
  const decoder = new ChunkedBody(options);
  try {
    const data = pieces.flatMap((piece) => decoder.push(piece));
    decoder.end();
    return { data: Buffer.concat(data).toString("latin1"), trailers: [...decoder.trailers] };
  } catch (error) {
    return (error as { s3Code?: string }).s3Code ?? error;
  }
}

const bytes = (text: string) => Buffer.from(text, "latin1");

describe("an aws-chunked body", () => {
  const chunk = fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 40 });

  it.each([
    ["unsigned with trailers", {}, ["x-amz-checksum-crc32:abcd==", "x-amz-checksum-sha1:e"]],
    ["signed", { signed: true }, undefined],
    ["signed with trailers", { signed: true }, ["x-amz-checksum-crc32:abcd=="]],
  ] as const)("%s decodes to the same, however it is cut", (_, form, trailers) => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 4 }), (chunks) => {
        const text = encode(chunks, trailers === undefined ? form : { ...form, trailers });
        const data = chunks.join("");
        const options: ChunkedBodyOptions = {
          decodedBytes: data.length,
          trailer: trailers !== undefined,
          ...("signed" in form ? { signer } : {}),
        };
        const expected = { data, trailers: (trailers ?? []).map((line) => line.split(":")) };
        for (const pieces of everySplit(bytes(text))) expect(decode(pieces, options)).toEqual(expected);
      }),
      { seed: inject("seed"), numRuns: inject("size") === "long" ? 100 : 8 },
    );
  });

  it("never answers differently for another cut, whatever bytes come", () => {
    const noise = fc.array(
      fc.oneof(
        fc.constantFrom("0\r\n", "\r\n", "3\r\nabc\r\n", "a:b\r\n", "\n", "\r", ";chunk-signature="),
        fc.string({ maxLength: 5 }),
      ),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(noise, fc.boolean(), (parts, trailer) => {
        const text = bytes(parts.join(""));
        const options = { decodedBytes: 6, trailer };
        const whole = decode([text], options);
        for (const pieces of everySplit(text)) expect(decode(pieces, options)).toEqual(whole);
      }),
      { seed: inject("seed"), numRuns: 200 },
    );
  });

  const good = encode(["hello ", "world"], { signed: true });
  const swapped = good.replace(/^(6;.*?\r\n.*?\r\n)(5;.*?\r\n.*?\r\n)/s, "$2$1");
  it.each([
    ["that is cut within a chunk", "5\r\nhel", "IncompleteBody"],
    ["without its last chunk", "5\r\nhello\r\n", "IncompleteBody"],
    ["without its last line", "5\r\nhello\r\n0\r\n", "IncompleteBody"],
    ["that is empty", "", "IncompleteBody"],
    ["shorter than declared", "4\r\nhell\r\n0\r\n\r\n", "IncompleteBody"],
    ["longer than declared", "6\r\nhello!\r\n0\r\n\r\n", "InvalidRequest"],
    ["with more after its end", "5\r\nhello\r\n0\r\n\r\nx", "InvalidRequest"],
    ["with a chunk longer than its size", "5\r\nhello!\r\n0\r\n\r\n", "InvalidRequest"],
    ["without a size", "\r\nhello\r\n0\r\n\r\n", "InvalidRequest"],
    ["with a signed size", "-5\r\nhello\r\n0\r\n\r\n", "InvalidRequest"],
    ["with a size of 14 digits", "00000000000005\r\nhello\r\n0\r\n\r\n", "InvalidRequest"],
    ["with a bare line feed", "5\nhello\r\n0\r\n\r\n", "InvalidRequest"],
    ["with an endless line", `5;${"x".repeat(2000)}`, "InvalidRequest"],
    [
      "with a signature where none is expected",
      `5;chunk-signature=${"0".repeat(64)}\r\nhello\r\n`,
      "InvalidRequest",
    ],
  ])("%s is refused", (_, text, code) => {
    expect(decode([bytes(text)], { decodedBytes: 5, trailer: false })).toBe(code);
  });

  it.each([
    ["changed data", good.replace("world", "w0rld"), "SignatureDoesNotMatch"],
    ["chunks in another order", swapped, "SignatureDoesNotMatch"],
    ["an unsigned chunk", good.replace(/;chunk-signature=[0-9a-f]{64}/, ""), "InvalidRequest"],
    [
      "a last chunk with another signature",
      good.replace(/[0-9a-f]{64}\r\n\r\n$/, `${"0".repeat(64)}\r\n\r\n`),
      "SignatureDoesNotMatch",
    ],
  ])("with %s is refused", (_, text, code) => {
    expect(decode([bytes(text)], { decodedBytes: 11, trailer: false, signer })).toBe(code);
  });

  const trailed = encode(["hi"], { signed: true, trailers: ["x-amz-checksum-crc32:abcd=="] });
  it.each([
    ["a changed trailer", trailed.replace("abcd", "abce"), "SignatureDoesNotMatch"],
    [
      "no signature of the trailer",
      trailed.replace(/x-amz-trailer-signature:.*\r\n/, ""),
      "SignatureDoesNotMatch",
    ],
    ["two signatures", trailed.replace(/(x-amz-trailer-signature:.*\r\n)/, "$1$1"), "InvalidRequest"],
    ["a trailer twice", trailed.replace(/(x-amz-checksum.*\r\n)/, "$1$1"), "InvalidRequest"],
    ["a line without a name", trailed.replace("x-amz-checksum-crc32", ""), "MalformedTrailerError"],
    [
      "too many trailers",
      trailed.replace(
        /(x-amz-checksum.*\r\n)/,
        Array.from({ length: 9 }, (_, index) => `x-${index}:1\r\n`).join(""),
      ),
      "MalformedTrailerError",
    ],
  ])("with %s is refused", (_, text, code) => {
    expect(decode([bytes(text)], { decodedBytes: 2, trailer: true, signer })).toBe(code);
  });
});
