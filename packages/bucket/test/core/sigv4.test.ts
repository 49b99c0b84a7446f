import { describe, expect, it } from "vitest";
import {
  chunkSignature,
  equalSecretly,
  parseAuthorization,
  parseTimestamp,
  signatureOf,
  signingKey,
} from "../../src/core/sigv4.ts";
import { credentials } from "../support/server.ts";

// The examples of Amazon's documentation ("Authenticating Requests: Using the Authorization Header").
const key = signingKey(credentials.secretAccessKey, "20130524", "us-east-1");
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const common = { timestamp: "20130524T000000Z", region: "us-east-1" };
const host = ["host", "examplebucket.s3.amazonaws.com"] as const;

describe("a signature", () => {
  it.each([
    [
      "GET with a range",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
      {
        method: "GET",
        path: "/test.txt",
        query: [],
        headers: [
          host,
          ["range", "bytes=0-9"],
          ["x-amz-content-sha256", EMPTY],
          ["x-amz-date", common.timestamp],
        ],
        payload: EMPTY,
      },
    ],
    [
      "PUT with an escaped key",
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
      {
        method: "PUT",
        path: "/test$file.text",
        query: [],
        headers: [
          ["date", "Fri, 24 May 2013 00:00:00 GMT"],
          host,
          ["x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"],
          ["x-amz-date", common.timestamp],
          ["x-amz-storage-class", "REDUCED_REDUNDANCY"],
        ],
        payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
      },
    ],
    [
      "GET of a list",
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
      {
        method: "GET",
        path: "/",
        query: [
          ["prefix", "J"],
          ["max-keys", "2"],
        ],
        headers: [host, ["x-amz-content-sha256", EMPTY], ["x-amz-date", common.timestamp]],
        payload: EMPTY,
      },
    ],
  ] as const)("of Amazon's example %s is Amazon's", (_, expected, request) => {
    expect(signatureOf(key, { ...common, ...request })).toBe(expected);
  });

  it("of each chunk of Amazon's example is Amazon's", () => {
    const seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    const signer = { key, ...common, seed };
    const sha256OfA65536 = "bf718b6f653bebc184e1479f1935b8da974d701b893afcf49e701f3e2f9f9c5a";
    const sha256OfA1024 = "2edc986847e209b4016e141a6dc8716d3207350f416969382d431539bf292e4a";
    const first = chunkSignature(signer, seed, sha256OfA65536);
    expect(first).toBe("ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
    const second = chunkSignature(signer, first, sha256OfA1024);
    expect(second).toBe("0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
    expect(chunkSignature(signer, second, EMPTY)).toBe(
      "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    );
  });
});

describe("an Authorization header", () => {
  const good =
    "AWS4-HMAC-SHA256 Credential=AKIA/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;x-amz-date," +
    `Signature=${"0".repeat(64)}`;

  it("is read, with or without blanks after the commas", () => {
    const expected = {
      accessKeyId: "AKIA",
      date: "20130524",
      region: "us-east-1",
      service: "s3",
      signedHeaders: ["host", "x-amz-date"],
      signature: "0".repeat(64),
    };
    expect(parseAuthorization(good)).toEqual(expected);
    expect(parseAuthorization(good.replaceAll(",", ", "))).toEqual(expected);
  });

  it.each([
    ["another scheme", "Bearer x"],
    ["no signature", good.replace(/,Signature.*/, "")],
    ["a short signature", good.slice(0, -1)],
    ["a scope of another form", good.replace("aws4_request", "aws5_request")],
    ["upper-case signed headers", good.replace("host", "Host")],
    ["a field twice", `${good},Signature=${"0".repeat(64)}`],
    ["a foreign field", `${good},More=1`],
    ["a field without value", `${good},More`],
  ])("with %s is not read", (_, header) => {
    expect(parseAuthorization(header)).toBeUndefined();
  });
});

describe("a timestamp", () => {
  it.each([
    "20130524T000000Z",
    "20240229T235959Z",
    "20001231T010203Z",
    "19700101T000000Z",
    "21000301T000000Z",
  ])("%s is the time it says", (text) => {
    const iso = text.replace(/(....)(..)(..)T(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6Z");
    expect(parseTimestamp(text)).toBe(Date.parse(iso));
  });

  it.each(["", "2013-05-24", "20131324T000000Z", "20130500T000000Z", "20130524T240000Z", "20130524T000000"])(
    "%j is none",
    (text) => {
      expect(parseTimestamp(text)).toBeUndefined();
    },
  );
});

describe("a secret comparison", () => {
  it("tells equal from different, whatever the lengths", () => {
    expect(equalSecretly("abc", "abc")).toBe(true);
    expect(equalSecretly("abc", "abd")).toBe(false);
    expect(equalSecretly("abc", "ab")).toBe(false);
  });
});
