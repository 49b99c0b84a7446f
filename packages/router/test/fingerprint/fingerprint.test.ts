import { describe, expect, it } from "vitest";
import {
  type Fingerprint,
  formatFingerprint,
  mismatchesOf,
  parseFingerprint,
} from "../../src/fingerprint/fingerprint.ts";
import { TokenGenerations } from "../../src/fingerprint/token-generation.ts";
import { credentials, own } from "../support/fingerprint.ts";

describe("a comparison", () => {
  it.each([
    ["the same", {}, []],
    ["another list", { backends: `sha256:${"cd".repeat(32)}` }, ["backends"]],
    ["another client token", { tokens: { ...own.tokens, client: "0009" } }, ["client"]],
    ["a second client token", { tokens: { ...own.tokens, client: "0001+0009" } }, ["client"]],
    ["a capability token", { tokens: { ...own.tokens, capability: "0009" } }, ["capability"]],
    ["tokens that cannot be used", { tokens: undefined }, []],
    [
      "another ledger, whose id salts its tokens",
      { ledger: "two", tokens: { ...own.tokens, client: "0009" } },
      ["ledger"],
    ],
    [
      "no word of its ledger, and another token",
      { ledger: undefined, tokens: { ...own.tokens, client: "0009" } },
      ["client"],
    ],
  ] as const)("%s", (_, difference, parts) => {
    const other = { ...own, replica: "b", ...difference } as Fingerprint;
    expect(mismatchesOf(own, [other])).toEqual(parts.map((part) => ({ replica: "b", part })));
  });
});

describe("a text", () => {
  it("is read as it was written", () => expect(parseFingerprint(formatFingerprint(own))).toEqual(own));

  it.each([
    ["no JSON", "{"],
    ["another version", JSON.stringify({ ...own, version: 2 })],
    ["no list", JSON.stringify({ ...own, backends: "x" })],
    ["one that is too long", formatFingerprint(own) + " ".repeat(5_000)],
  ])("that is %s is none", (_, text) => expect(parseFingerprint(text)).toBeUndefined());
});

describe("a token's generation", () => {
  it("is 16 bits, of the ledger and the role, the same for the same token", async () => {
    const one = new TokenGenerations("ledger-1");
    const found = await one.of("client", credentials.client);
    // Replicas of two versions must say the same, and whoever guesses must pay for scrypt (N = 16,384) each time.
    expect(found).toBe("1092");
    expect(await new TokenGenerations("ledger-1").of("client", credentials.client)).toBe(found);
    const others = [
      await new TokenGenerations("ledger-2").of("client", credentials.client),
      await one.of("backend", credentials.client),
      await one.of("client", [credentials.backend]),
    ];
    expect(others).not.toContain(found);
  });

  it("does not depend on which token came first", async () => {
    const generations = new TokenGenerations("ledger-1");
    const both = [credentials.client[0] as Buffer, credentials.backend];
    expect(await generations.of("client", both.toReversed())).toBe(await generations.of("client", both));
  });
});
