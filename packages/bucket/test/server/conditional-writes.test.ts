/**
 * What Ceph's S3 test suite (ceph/s3-tests, s3tests/functional/test_s3.py) expects of conditional requests on a bucket without versions,
 * told as facts: the request, the answer, what stands afterwards. The names are those of its tests.
 *
 * Where it tests what Ceph's own gateway does and Amazon does not, the embedded server does as Amazon does, or refuses aloud:
 * - a write with `If-None-Match` and an ETag (test_put_object_ifnonmatch_good, _failed; parts of test_put_object_if_match and
 *   test_multipart_put_object_if_match): S3 knows `*` alone, and answers 501 NotImplemented, as here;
 * - `If-Match` on a key without an object: 404 NoSuchKey, as Amazon documents it and the suite's newer tests say; the older
 *   test_put_object_ifmatch_nonexisted_failed expected 412;
 * - a deletion with `If-Match` of a key without an object (part of test_delete_object_if_match): 204 in the suite, 404 NoSuchKey here;
 * - conditions on time and size of a deletion (x-amz-if-match-last-modified-time, x-amz-if-match-size), which are for directory buckets,
 *   conditions in a multi-delete, versions, and copies: not there at all; `refusals.test.ts` has what is refused.
 */
import { describe, expect, it } from "vitest";
import { sendSigned } from "../support/raw-request.ts";
import { startServer } from "../support/server.ts";

interface Step {
  method: "GET" | "PUT" | "DELETE";
  /** `ETAG` is what the first PUT of the case answered. */
  headers?: Record<string, string>;
  body?: string;
  answer: number;
  code?: string;
}

const put = (body: string): Step => ({ method: "PUT", body, answer: 200 });
const putIf = (headers: Record<string, string>, answer: number, code?: string): Step => ({
  method: "PUT",
  headers,
  body: "zar",
  answer,
  ...(code === undefined ? {} : { code }),
});
const getIf = (headers: Record<string, string>, answer: number, code?: string): Step => ({
  method: "GET",
  headers,
  answer,
  ...(code === undefined ? {} : { code }),
});
const remove = (headers: Record<string, string>, answer: number, code?: string): Step => ({
  method: "DELETE",
  headers,
  answer,
  ...(code === undefined ? {} : { code }),
});
const failed = "PreconditionFailed";
const missing = "NoSuchKey";
const bad = { "if-match": '"ABCORZ"' };
const future = new Date(Date.now() + 365 * 86_400_000).toUTCString();
const past = "Sat, 29 Oct 1994 19:43:31 GMT";

const cases: [name: string, steps: Step[], stands: string | undefined][] = [
  ["test_get_object_ifmatch_good", [put("bar"), getIf({ "if-match": "ETAG" }, 200)], "bar"],
  ["test_get_object_ifmatch_failed", [put("bar"), getIf(bad, 412, failed)], "bar"],
  ["test_get_object_ifnonematch_good", [put("bar"), getIf({ "if-none-match": "ETAG" }, 304)], "bar"],
  ["test_get_object_ifnonematch_failed", [put("bar"), getIf({ "if-none-match": "ABCORZ" }, 200)], "bar"],
  ["test_get_object_ifmodifiedsince_good", [put("bar"), getIf({ "if-modified-since": past }, 200)], "bar"],
  [
    "test_get_object_ifmodifiedsince_failed",
    [put("bar"), getIf({ "if-modified-since": future }, 304)],
    "bar",
  ],
  [
    "test_get_object_ifunmodifiedsince_good",
    [put("bar"), getIf({ "if-unmodified-since": past }, 412, failed)],
    "bar",
  ],
  [
    "test_get_object_ifunmodifiedsince_failed",
    [put("bar"), getIf({ "if-unmodified-since": future }, 200)],
    "bar",
  ],
  ["test_put_object_ifmatch_good", [put("bar"), putIf({ "if-match": "ETAG" }, 200)], "zar"],
  ["test_put_object_ifmatch_failed", [put("bar"), putIf(bad, 412, failed)], "bar"],
  ["test_put_object_ifmatch_overwrite_existed_good", [put("bar"), putIf({ "if-match": "*" }, 200)], "zar"],
  ["test_put_object_ifmatch_nonexisted_failed", [putIf({ "if-match": "*" }, 404, missing)], undefined],
  ["test_put_object_ifnonmatch_nonexisted_good", [putIf({ "if-none-match": "*" }, 200)], "zar"],
  [
    "test_put_object_ifnonmatch_overwrite_existed_failed",
    [put("bar"), putIf({ "if-none-match": "*" }, 412, failed)],
    "bar",
  ],
  [
    "test_put_object_if_match",
    [
      { ...put("bar"), headers: { "if-none-match": "*" } },
      putIf({ "if-none-match": "*" }, 412, failed),
      putIf({ "if-none-match": "ETAG" }, 501, "NotImplemented"),
      { ...put("bar"), headers: { "if-match": "ETAG" } },
      remove({}, 204),
      putIf({ "if-match": "*" }, 404, missing),
      putIf({ "if-match": "badetag" }, 404, missing),
      put("bar"),
      { ...put("bar"), headers: { "if-match": "*" } },
      putIf({ "if-match": "badetag" }, 412, failed),
      putIf({ "if-match": "ETAG" }, 200),
    ],
    "zar",
  ],
  [
    "test_delete_object_if_match",
    [
      put("bar"),
      remove({ "if-match": "badetag" }, 412, failed),
      getIf({}, 200),
      remove({ "if-match": "ETAG" }, 204),
      remove({ "if-match": "*" }, 404, missing),
      remove({ "if-match": "badetag" }, 404, missing),
      put("bar"),
      remove({ "if-match": "*" }, 204),
    ],
    undefined,
  ],
];

describe("as Ceph's S3 tests expect it", () => {
  it.each(cases)("%s", async (_, steps, stands) => {
    const server = await startServer();
    let etag = "";
    for (const { method, headers = {}, body, answer, code } of steps) {
      const given = Object.fromEntries(
        Object.entries(headers).map(([key, value]) => [key, value === "ETAG" ? etag : value]),
      );
      const got = await sendSigned(server, {
        method,
        target: "/cells/foo",
        headers: given,
        ...(body === undefined ? {} : { body }),
      });
      expect([method, headers, got.status, got.code]).toEqual([method, headers, answer, code]);
      if (etag === "" && method === "PUT") etag = /\r\netag: *(\S+)/i.exec(got.head)?.[1] ?? "";
    }
    const end = await sendSigned(server, { method: "GET", target: "/cells/foo" });
    expect([end.status, end.status === 200 ? end.body : undefined]).toEqual(
      stands === undefined ? [404, undefined] : [200, stands],
    );
  });

  it("test_multipart_put_object_if_match", async () => {
    const server = await startServer();
    const request = async (method: string, target: string, body?: string, headers = {}) => {
      const got = await sendSigned(server, {
        method,
        target,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      return {
        ...got,
        etag:
          /\r\netag: *(\S+)/i.exec(got.head)?.[1] ?? /<ETag>(?:&quot;|")?([^<&"]+)/.exec(got.body)?.[1] ?? "",
      };
    };
    let count = 0;
    const upload = async (headers: Record<string, string>) => {
      count += 1;
      const created = await request("POST", "/cells/foo?uploads=");
      const id = /<UploadId>([^<]+)/.exec(created.body)?.[1] ?? "";
      const part = await request("PUT", `/cells/foo?partNumber=1&uploadId=${id}`, `part ${count}`);
      const xml = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.etag}</ETag></Part></CompleteMultipartUpload>`;
      return request("POST", `/cells/foo?uploadId=${id}`, xml, headers);
    };
    const first = await upload({ "if-none-match": "*" });
    expect(first.status).toBe(200);
    expect(await upload({ "if-none-match": "*" })).toMatchObject({ status: 412, code: failed });
    expect(await upload({ "if-none-match": "ETAG" })).toMatchObject({ status: 501, code: "NotImplemented" });
    expect(await upload({ "if-match": first.etag })).toMatchObject({ status: 200 });
    expect(await upload({ "if-match": first.etag })).toMatchObject({ status: 412, code: failed });
    await request("DELETE", "/cells/foo");
    expect(await upload({ "if-match": "*" })).toMatchObject({ status: 404, code: missing });
    expect(await upload({ "if-match": "badetag" })).toMatchObject({ status: 404, code: missing });
    const again = await upload({});
    expect(await upload({ "if-match": "badetag" })).toMatchObject({ status: 412, code: failed });
    expect(await upload({ "if-match": again.etag })).toMatchObject({ status: 200 });
    expect(await upload({ "if-match": "*" })).toMatchObject({ status: 200 });
    expect((await request("GET", "/cells/foo")).body).toBe(`part ${count}`);
  });
});
