import { expect, it } from "vitest";
import { readHead } from "../../src/core/request-head.ts";

const read = (length: string) =>
  readHead(Buffer.from(`POST /v1/executions HTTP/1.1\r\nContent-Length: ${length}\r\n\r\n`), false);

it.each([
  ["0", 0],
  ["000000000000000000000000000012", 12],
  ["9007199254740991", Number.MAX_SAFE_INTEGER],
  ["18446744073709551615", 2 ** 64],
])("the length %s is %i: any 64-bit number, with leading zeros", (text, contentLength) => {
  expect(read(text)).toMatchObject({ kind: "head", head: { contentLength } });
});

it.each(["", "18446744073709551616", "-1", "+1", "1.0", "0x1", "1 1", "１"])(
  "the length %j ends the connection",
  (text) => {
    expect(read(text)).toEqual({ kind: "silent" });
  },
);
