import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { originProblem } from "../../src/core/origin.ts";
import { vectors } from "../support/ledger-vectors.ts";

it.each(vectors.backendUrls)("the published backend $url", ({ url, address }) => {
  expect(originProblem(url) === undefined).toBe(address !== null);
});

it.each([
  ["http://n", undefined],
  ["http://\u00e4:1", undefined],
  [`http://${"n".repeat(1_017)}`, undefined],
  [`http://${"n".repeat(1_018)}`, "longer than 1024 bytes"],
  [`http://${"\u00e4".repeat(509)}`, "longer than 1024 bytes"],
  ["", "no http:// origin"],
  ["ftp://n", "no http:// origin"],
  ["http:/n", "no http:// origin"],
  ["http://", "without a host"],
  ["http://n/", "more than a scheme, a host and a port"],
  ["http://u@n", "more than a scheme, a host and a port"],
  ["http://n\u00a0", "more than a scheme, a host and a port"],
  ["http://n\u0000", "more than a scheme, a host and a port"],
  ["http://n\ud800", "more than a scheme, a host and a port"],
  ["http://n\n", "more than a scheme, a host and a port"],
])("an origin of %j is %s", (origin, problem) => {
  expect(originProblem(origin)).toBe(problem);
});

describe("for any text", () => {
  const options = { seed: inject("seed"), numRuns: inject("size") === "long" ? 20_000 : 500 };

  it("an origin has one scheme, no credentials, no path, no white space", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.string({ unit: fc.constantFrom("n", "1", ":", "[", ".", "/", "@", "?", "#", " "), maxLength: 12 }),
    );
    fc.assert(
      fc.property(text, (authority) => {
        const isGood = authority !== "" && !/[/@?#\s\p{Cc}\p{Cs}]/u.test(authority);
        expect(originProblem(`http://${authority}`) === undefined).toBe(isGood);
        expect(originProblem(authority)).toBeDefined();
      }),
      options,
    );
  });

  it("URL reads the same host from an origin that it can read at all", () => {
    const host = fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
    );
    fc.assert(
      fc.property(host, fc.integer({ min: 1, max: 65_535 }), (name, port) => {
        const origin = `http://${name}:${port}`;
        expect(originProblem(origin)).toBeUndefined();
        expect(new URL(origin).pathname).toBe("/");
      }),
      options,
    );
  });
});
