import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chunkSignature } from "../../src/core/sigv4.ts";
import { parseAnswer, type RawRequest, sendRaw, sendSigned, signedHead } from "../support/raw-request.ts";
import { startServer } from "../support/server.ts";

const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Every file below objects/, uploads/ and the staging folders: what a refused request must not leave. */
async function leftovers(directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of ["objects", "staging", "uploads"]) {
    const entries = await readdir(join(directory, folder), { recursive: true, withFileTypes: true });
    found.push(...entries.filter((entry) => entry.isFile() && entry.name !== "gate").map(({ name }) => name));
  }
  return found;
}

const put: RawRequest = { method: "PUT", target: "/cells/key", body: "content" };

describe("a request whose head is wrong", () => {
  it.each<[string, RawRequest, number, string]>([
    ["another secret", { ...put, secretAccessKey: "wrong" }, 403, "SignatureDoesNotMatch"],
    ["another access key", { ...put, accessKeyId: "AKIAOTHER" }, 403, "InvalidAccessKeyId"],
    ["another region", { ...put, region: "eu-west-1" }, 400, "AuthorizationHeaderMalformed"],
    ["a clock 16 minutes back", { ...put, aheadMs: -960_000 }, 403, "RequestTimeTooSkewed"],
    ["a clock 16 minutes ahead", { ...put, aheadMs: 960_000 }, 403, "RequestTimeTooSkewed"],
    ["an unsigned x-amz header", { ...put, unsigned: { "x-amz-meta-a": "1" } }, 403, "AccessDenied"],
    ["a header twice", { ...put, unsigned: { Host: "x" } }, 400, "InvalidRequest"],
    ["a key that climbs out", { ...put, target: "/cells/../../etc/passwd" }, 400, "InvalidURI"],
    ["an escaped key that climbs out", { ...put, target: "/cells/%2e%2e/%2E%2E/x" }, 400, "InvalidURI"],
    [
      "a key that climbs out of the bucket by escapes",
      { ...put, target: "/cells/a%2f..%2f..%2fx" },
      400,
      "InvalidURI",
    ],
    ["a key that is not UTF-8", { ...put, target: "/cells/%ff" }, 400, "InvalidURI"],
    ["a malformed escape", { ...put, target: "/cells/%zz" }, 400, "InvalidURI"],
    ["a key of 1,025 bytes", { ...put, target: `/cells/${"k".repeat(1025)}` }, 400, "KeyTooLongError"],
    [
      "a target of 9,000 bytes",
      { ...put, target: `/cells/k?prefix=${"k".repeat(9000)}` },
      414,
      "RequestURITooLong",
    ],
    ["a parameter twice", { ...put, target: "/cells/k?prefix=a&prefix=b" }, 400, "InvalidURI"],
    ["another bucket", { ...put, target: "/other/key" }, 404, "NoSuchBucket"],
    ["a new bucket", { method: "PUT", target: "/other" }, 403, "AccessDenied"],
    ["an unknown sub-resource", { ...put, target: "/cells/key?acl=" }, 501, "NotImplemented"],
    ["a tagging header", { ...put, headers: { "x-amz-tagging": "a=b" } }, 501, "NotImplemented"],
    ["a copy source", { ...put, headers: { "x-amz-copy-source": "/cells/a" } }, 501, "NotImplemented"],
    ["a public ACL", { ...put, headers: { "x-amz-acl": "public-read" } }, 501, "NotImplemented"],
    [
      "another storage class",
      { ...put, headers: { "x-amz-storage-class": "GLACIER" } },
      501,
      "NotImplemented",
    ],
    ["If-None-Match with an ETag", { ...put, headers: { "if-none-match": '"a"' } }, 501, "NotImplemented"],
    [
      "a payload form of ECDSA",
      { ...put, payload: "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD" },
      501,
      "NotImplemented",
    ],
    ["a payload form of no kind", { ...put, payload: "abc" }, 400, "InvalidRequest"],
    [
      "a chunked body without its length",
      { ...put, payload: "STREAMING-UNSIGNED-PAYLOAD-TRAILER" },
      411,
      "MissingContentLength",
    ],
    [
      "an unknown checksum",
      { ...put, headers: { "x-amz-trailer": "x-amz-checksum-md6" } },
      501,
      "NotImplemented",
    ],
    ["list version 1", { method: "GET", target: "/cells" }, 501, "NotImplemented"],
    ["a method that no object has", { method: "PATCH", target: "/cells/key" }, 501, "NotImplemented"],
    ["a bucket deletion", { method: "DELETE", target: "/cells" }, 501, "NotImplemented"],
  ])("with %s is refused and leaves nothing", async (_, request, status, code) => {
    const server = await startServer();
    const answer = await sendSigned(server, request);
    expect([answer.status, answer.code]).toEqual([status, code]);
    expect(await leftovers(server.directory)).toEqual([]);
    expect(server.failures).toEqual([]);
  });

  it("without a signature is refused", async () => {
    const server = await startServer();
    const answer = await sendRaw(server, ["GET /cells/key HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]);
    expect([answer.status, answer.code]).toEqual([403, "AccessDenied"]);
  });

  it("with a signature in the query (presigned) is refused with a reason", async () => {
    const server = await startServer();
    const answer = await sendRaw(server, [
      "GET /cells/key?X-Amz-Signature=00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ]);
    expect([answer.status, answer.code]).toEqual([501, "NotImplemented"]);
    expect(answer.body).toContain("presigned");
  });

  it("of more than 16 KiB is refused", async () => {
    const server = await startServer();
    const answer = await sendSigned(server, { ...put, headers: { "x-amz-meta-a": "a".repeat(17_000) } });
    expect([answer.status, answer.code]).toEqual([431, "RequestHeaderSectionTooLarge"]);
    expect(await leftovers(server.directory)).toEqual([]);
  });

  it("with more metadata than is kept is refused", async () => {
    const server = await startServer();
    const answer = await sendSigned(server, {
      ...put,
      headers: { "x-amz-meta-a": "a".repeat(9_000) },
    });
    expect([answer.status, answer.code]).toEqual([400, "MetadataTooLarge"]);
  });

  it("that is not HTTP is refused", async () => {
    const server = await startServer();
    const answer = await sendRaw(server, ["HELLO\r\n\r\n"]);
    expect([answer.status, answer.code]).toEqual([400, "BadRequest"]);
  });

  it("is refused before its body is asked for (Expect: 100-continue)", async () => {
    const server = await startServer();
    const { head } = signedHead(server, {
      ...put,
      secretAccessKey: "wrong",
      headers: { expect: "100-continue", "content-length": "7" },
    });
    const answer = await sendRaw(server, [head]);
    expect([answer.status, answer.code]).toEqual([403, "SignatureDoesNotMatch"]);
  });

  it("is asked for its body when it is right (Expect: 100-continue)", async () => {
    const server = await startServer();
    const { head } = signedHead(server, { ...put, headers: { expect: "100-continue", connection: "close" } });
    const { hostname, port } = new URL(server.endpoint);
    const received = await new Promise<string>((done, failed) => {
      let text = "";
      const socket = connect(Number(port), hostname, () => socket.write(head));
      socket.on("error", failed);
      socket.on("data", (bytes) => {
        text += bytes.toString("latin1");
        if (text === "HTTP/1.1 100 Continue\r\n\r\n") socket.write("content");
      });
      socket.on("close", () => done(text));
    });
    expect(received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  });

  it("sees its refusal although it sends megabytes on", async () => {
    const server = await startServer();
    const body = Buffer.alloc(4_000_000, "x");
    const answer = await sendSigned(server, { ...put, body, secretAccessKey: "wrong" });
    expect([answer.status, answer.code]).toEqual([403, "SignatureDoesNotMatch"]);
    expect(answer.head.toLowerCase()).toContain("connection: close");
  });
});

describe("a request whose body is wrong", () => {
  const chunked = {
    method: "PUT",
    target: "/cells/key",
    payload: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
  } as const;
  /** `data` in one signed chunk, and the last chunk. */
  function signedChunks(
    seed: string,
    key: Uint8Array,
    timestamp: string,
    dataSha256: string,
    data: string,
  ): string {
    const signer = { key, timestamp, region: "us-east-1", seed };
    const first = chunkSignature(signer, seed, dataSha256);
    const last = chunkSignature(signer, first, EMPTY_SHA256);
    return `${data.length.toString(16)};chunk-signature=${first}\r\n${data}\r\n0;chunk-signature=${last}\r\n\r\n`;
  }
  const HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

  async function sendChunked(change: (body: string) => string, end = false) {
    const server = await startServer();
    const probe = signedHead(server, { ...chunked, body: "" });
    const length = change(signedChunks(probe.seed, probe.key, probe.timestamp, HELLO_SHA256, "hello")).length;
    const { head, seed, key, timestamp } = signedHead(server, {
      ...chunked,
      headers: {
        "content-length": String(end ? length + 10 : length),
        "x-amz-decoded-content-length": "5",
        "content-encoding": "aws-chunked",
        connection: "close",
      },
    });
    const body = change(signedChunks(seed, key, timestamp, HELLO_SHA256, "hello"));
    return { server, answer: await sendRaw(server, [head, body], { end }) };
  }

  it("is stored when it is right after all", async () => {
    const { server, answer } = await sendChunked((body) => body);
    expect(answer.status).toBe(200);
    const read = await sendSigned(server, { method: "GET", target: "/cells/key" });
    expect([read.status, read.body]).toEqual([200, "hello"]);
    expect(read.head).not.toContain("aws-chunked");
  });

  it.each([
    ["changed data", (body: string) => body.replace("hello", "hallo"), 403, "SignatureDoesNotMatch"],
    ["no last chunk", (body: string) => body.slice(0, body.indexOf("0;chunk")), 400, "IncompleteBody"],
    [
      "a last chunk of another signature",
      (body: string) => body.replace(/.{4}\r\n\r\n$/, "0000\r\n\r\n"),
      403,
      "SignatureDoesNotMatch",
    ],
    ["more data than declared", (body: string) => body.replace(/^5/, "6"), 400, "InvalidRequest"],
  ] as const)("of signed chunks with %s is refused and leaves nothing", async (_, change, status, code) => {
    const { server, answer } = await sendChunked(change);
    expect([answer.status, answer.code]).toEqual([status, code]);
    expect(await leftovers(server.directory)).toEqual([]);
  });

  it("of signed chunks that breaks off is refused and leaves nothing", async () => {
    const { server, answer } = await sendChunked((body) => body.slice(0, 95), true);
    expect([answer.status, answer.code]).toEqual([400, "IncompleteBody"]);
    expect(await leftovers(server.directory)).toEqual([]);
  });

  it.each<[string, RawRequest, number, string]>([
    ["another hash", { ...put, payload: EMPTY_SHA256 }, 400, "XAmzContentSHA256Mismatch"],
    ["another CRC-32", { ...put, headers: { "x-amz-checksum-crc32": "AAAAAA==" } }, 400, "BadDigest"],
    ["half a CRC-32", { ...put, headers: { "x-amz-checksum-crc32": "AAA=" } }, 400, "InvalidDigest"],
    ["another MD5", { ...put, headers: { "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg==" } }, 400, "BadDigest"],
    [
      "XML that is none",
      { method: "POST", target: "/cells?delete=", body: "<Delete><Object>" },
      400,
      "MalformedXML",
    ],
    [
      "XML of another kind",
      { method: "POST", target: "/cells?delete=", body: "<Other/>" },
      400,
      "MalformedXML",
    ],
    [
      "an entity declaration",
      {
        method: "POST",
        target: "/cells?delete=",
        body: '<!DOCTYPE a [<!ENTITY b "c">]><Delete><Object><Key>&b;</Key></Object></Delete>',
      },
      400,
      "MalformedXML",
    ],
    [
      "1,001 keys to delete",
      {
        method: "POST",
        target: "/cells?delete=",
        body: `<Delete>${"<Object><Key>k</Key></Object>".repeat(1001)}</Delete>`,
      },
      400,
      "MalformedXML",
    ],
    [
      "5 MB of XML",
      { method: "POST", target: "/cells?delete=", body: "x".repeat(5_000_000) },
      400,
      "EntityTooLarge",
    ],
    ["a body on a GET", { method: "GET", target: "/cells/key", body: "x" }, 400, "EntityTooLarge"],
  ])("with %s is refused and leaves nothing", async (_, request, status, code) => {
    const server = await startServer();
    const answer = await sendSigned(server, {
      ...request,
      headers: { connection: "close", ...request.headers },
    });
    expect([answer.status, answer.code]).toEqual([status, code]);
    expect(await leftovers(server.directory)).toEqual([]);
  });

  it("of more bytes than the server takes is refused by its declared length", async () => {
    const server = await startServer({ maxObjectBytes: 6 });
    const answer = await sendSigned(server, put);
    expect([answer.status, answer.code]).toEqual([400, "EntityTooLarge"]);
  });

  it("that breaks off leaves nothing", async () => {
    const server = await startServer();
    const { head } = signedHead(server, { ...put, headers: { "content-length": "70" } });
    const answer = await sendRaw(server, [head, "content"], { end: true });
    expect([answer.status, answer.code]).toEqual([400, "IncompleteBody"]);
    await expect.poll(() => leftovers(server.directory), { timeout: 20_000 }).toEqual([]);
  });
});

it("an answer that is parsed has its code", () => {
  expect(parseAnswer("HTTP/1.1 400 Bad\r\n\r\n<Code>X</Code>").code).toBe("X");
});
