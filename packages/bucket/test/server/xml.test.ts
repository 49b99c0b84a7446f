import { describe, expect, it } from "vitest";
import { parseComplete, parseDelete } from "../../src/server/xml.ts";

const keysOf = (key: string) =>
  parseDelete(`<Delete><Object><Key>${key}</Key></Object></Delete>`).Object[0]?.Key;

describe("the key of a multi-delete", () => {
  it.each([
    ["plain", "plain"],
    ["a&amp;b&lt;c&gt;d&quot;e&apos;f", "a&b<c>d\"e'f"],
    ["z/a&#x1;b", "z/a\u0001b"],
    ["&#x0;&#8;&#xB;&#x1F;&#x7f;", "\u0000\b\u000b\u001f\u007f"],
    ["&#x1F600;&#233;", "\u{1F600}\u00e9"],
    ["&amp;#x1;", "&#x1;"],
    [" spaces ", " spaces "],
  ])("%j is %j", (written, key) => {
    expect(keysOf(written)).toBe(key);
  });

  it.each(["a&b", "a&nbsp;b", "&#xD800;", "&#x110000;", "&#;", "&", "&#xZ;"])("%j is refused", (written) => {
    expect(() => keysOf(written)).toThrow(expect.objectContaining({ s3Code: "MalformedXML" }));
  });
});

it("the ETag of a part may be quoted by references", () => {
  const part = "<Part><PartNumber>1</PartNumber><ETag>&quot;abc&quot;</ETag></Part>";
  expect(parseComplete(`<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`)).toEqual([
    { partNumber: 1, etag: "abc" },
  ]);
});
