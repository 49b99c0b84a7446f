import { expect, test } from "vitest";
import {
  badRequestAnswer,
  drainRefusal,
  encodeAnswer,
  lostAnswer,
  unavailableAnswer,
} from "../../src/core/answer.ts";
import { headerJson, insertField } from "../../src/core/rewrite.ts";
import { bytes } from "../support/splits.ts";

const date = "Thu, 01 Jan 1970 00:00:00 GMT";

function text(answer: Parameters<typeof encodeAnswer>[0], request = { isHead: false, close: false }): string {
  return Buffer.from(encodeAnswer(answer, request, date)).toString();
}

test("an answer has its length in bytes and a date", () => {
  expect(text({ status: 200, headers: { a: "b" }, body: "é" })).toBe(
    `HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 2\r\ndate: ${date}\r\n\r\né`,
  );
});

test("an answer to HEAD declares the length and has no body", () => {
  expect(text({ status: 404, body: "abc" }, { isHead: true, close: true })).toBe(
    `HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 3\r\ndate: ${date}\r\n\r\n`,
  );
});

test.each([204, 304])("a %d has neither length nor body", (status) => {
  expect(text({ status, body: "abc" })).toMatch(/^HTTP\/1\.1 [0-9]+ [A-Za-z ]+\r\ndate: [^\r]+\r\n\r\n$/);
});

test("an answer without a body has the length 0, and a status that has no name a filler", () => {
  expect(text({ status: 299 })).toBe(`HTTP/1.1 299 Status\r\ncontent-length: 0\r\ndate: ${date}\r\n\r\n`);
});

test("the refusal is the one that clients recognise", () => {
  expect(text(drainRefusal, { isHead: false, close: true })).toBe(
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n" +
      "proxy-status: celld; error=destination_unavailable\r\ncellkit-outcome: not-run\r\nconnection: close\r\n" +
      `content-length: 28\r\ndate: ${date}\r\n\r\n{"ok":false,"draining":true}`,
  );
});

test("each own answer says whether the request can have run", () => {
  const outcome = (answer: { headers?: Readonly<Record<string, string>> }) =>
    answer.headers?.["cellkit-outcome"];
  expect(outcome(unavailableAnswer("connection_refused"))).toBe("not-run");
  expect(outcome(lostAnswer("connection_terminated"))).toBe("unknown");
  expect(outcome(badRequestAnswer("r", "unknown"))).toBe("unknown");
});

test("a field is put before the first field of a head", () => {
  const head = bytes("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const line = bytes("A: b\r\n");
  const room = new Uint8Array(head.length + line.length);
  expect(Buffer.from(insertField(head, 16, line, room)).toString()).toBe(
    "GET / HTTP/1.1\r\nA: b\r\nHost: h\r\n\r\n",
  );
});

test("JSON in a header has only printable ASCII and reads back the same", () => {
  const value = { a: "é\u{1f600}\r\n\u007f\u2028" };
  expect(headerJson(value)).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(headerJson(value))).toEqual(value);
});
