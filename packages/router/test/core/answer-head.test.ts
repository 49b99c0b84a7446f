import { describe, expect, it } from "vitest";
import { readAnswerHead } from "../../src/core/answer-head.ts";

const read = (text: string, at?: number) => readAnswerHead(Buffer.from(text), at);
const early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";

describe("an answer", () => {
  it.each([
    ["HTTP/1.1 202 OK\r\nA: b\r\n\r\nbody", 202],
    ["HTTP/1.0 404 unknown\r\n\r\n", 404],
    ["HTTP/1.1 503\r\n\r\n", 503],
    ["HTTP/1.1 200 \r\n\r\n", 200],
    ["HTTP/1.1 999 odd\r\n\r\n", 999],
  ])("that begins with %j has status %i", (text, status) => {
    const bodyAt = text.indexOf("\r\n\r\n") + 4;
    expect(read(text)).toEqual({ kind: "head", status, at: 0, bodyAt });
  });

  it("has the status of its last head, behind those of 1xx", () => {
    const text = `${early}HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 OK\r\n\r\n{}`;
    const at = text.lastIndexOf("HTTP");
    expect(read(text)).toEqual({ kind: "head", status: 404, at, bodyAt: text.length - 2 });
  });

  it.each([
    ["an empty line", "\r\nHTTP/1.1 404 OK\r\n\r\n"],
    ["a bare line feed", "\nHTTP/1.1 404 OK\r\n\r\n"],
    ["a status of four digits", "HTTP/1.1 0404 OK\r\n\r\n"],
    ["a status of two digits", "HTTP/1.1 40 OK\r\n\r\n"],
    ["a status below 100", "HTTP/1.1 004 OK\r\n\r\n"],
    ["letters in its status", "HTTP/1.1 2xx OK\r\n\r\n"],
    ["a tab before its status", "HTTP/1.1\t404 OK\r\n\r\n"],
    ["two spaces before its status", "HTTP/1.1  404 OK\r\n\r\n"],
    ["a line that a bare line feed ends", "HTTP/1.1 404 OK\n\nabc\r\n\r\n"],
    ["a line that a bare carriage return ends", "HTTP/1.1 404 OK\rX: y\r\n\r\n"],
    ["a reason without an end", `HTTP/1.1 404 ${"x".repeat(2_000)}\r\n\r\n`],
    ["another protocol", "PRI * HTTP/2.0\r\n\r\n"],
    ["a change of the protocol", "HTTP/1.1 101 Switching\r\n\r\nHTTP/1.1 404 OK\r\n\r\n"],
    ["such a thing behind a 1xx", `${early}\r\nHTTP/1.1 404 OK\r\n\r\n`],
    ["nothing", "\r\n\r\n"],
  ])("does not begin with %s", (_what, text) => {
    expect(read(text)).toEqual({ kind: "none" });
  });

  it("is not there before its head has an end, and is read on from where it begins", () => {
    expect(read("")).toEqual({ kind: "more", at: 0 });
    expect(read("HTTP/1.1 200 OK\r\nA: b\r\n")).toEqual({ kind: "more", at: 0 });
    const cut = `${early}HTTP/1.1 200 OK\r\n`;
    expect(read(cut)).toEqual({ kind: "more", at: early.length });
    expect(read(`${cut}\r\n`, early.length)).toMatchObject({ status: 200, at: early.length });
  });
});
