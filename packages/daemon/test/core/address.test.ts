import { expect, it } from "vitest";
import { addressOption } from "../../src/index.ts";

it.each([
  ["127.0.0.1:80", "127.0.0.1", 80],
  ["name.example:0", "name.example", 0],
  ["[::1]:65535", "::1", 65_535],
  ["[::ffff:10.0.0.1]:1", "::ffff:10.0.0.1", 1],
])("%s is an address", (text, host, port) => {
  expect(addressOption().parse(text)).toEqual({ host, port });
});

it.each([
  "",
  "host",
  "host:",
  ":80",
  "::1:80",
  "[::1]",
  "[host]:80",
  "host:65536",
  "host:-1",
  "host:8e1",
  "a b:80",
  "http://h:80",
])("%j is none", (text) => {
  expect(() => addressOption().parse(text)).toThrow("must be HOST:PORT, an IPv6 address in brackets");
});

it("a program's own check has the last word", () => {
  const option = addressOption(({ port }) => (port === 0 ? "needs a port" : undefined));
  expect(() => option.parse("host:0")).toThrow("needs a port");
  expect(option.parse("host:1")).toEqual({ host: "host", port: 1 });
});
