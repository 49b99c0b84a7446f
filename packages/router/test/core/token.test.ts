import { parseToken } from "@cellkit/execution/contract";
import { describe, expect, it } from "vitest";
import { type Credentials, distinctnessProblem, isAuthorized } from "../../src/core/credentials.ts";
import { isAmong, isSameToken } from "../../src/core/token.ts";
import { vectors } from "../support/vectors.ts";

describe("a token file", () => {
  it.each(vectors.tokenFiles.map((vector) => [vector.name, vector] as const))("%s", (_name, vector) => {
    const parsed = parseToken(Buffer.from(vector.fileBase64, "base64"));
    expect("token" in parsed).toBe(vector.valid);
    expect("token" in parsed ? parsed.token.toString() : null).toBe(vector.token);
  });

  it.each([
    ["Unicode's white space around it is left out", "\u0085\u2003", true],
    ["U+FEFF is none", "\ufeff", false],
    ["U+200B is none", "\u200b", false],
  ])("%s", (_rule, space, valid) => {
    expect("token" in parseToken(Buffer.from(`${space}${"a".repeat(24)}${space}`))).toBe(valid);
  });

  it("that is none has a problem which tells nothing of it", () => {
    for (const file of [
      "short-secret",
      "secret with spaces, long enough",
      "s".repeat(5_000),
      "geheim\u00e9".repeat(5),
    ]) {
      const parsed = parseToken(Buffer.from(file));
      expect(parsed).toHaveProperty("problem");
      expect(JSON.stringify(parsed)).not.toMatch(/secret|geheim|sss/);
    }
  });
});

it("tokens are equal when all of their bytes are", () => {
  const [one, same, other, longer] = ["abc", "abc", "abd", "abcd"].map((text) => Buffer.from(text)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  expect(isSameToken(one, same)).toBe(true);
  expect(isSameToken(one, other)).toBe(false);
  expect(isSameToken(one, longer)).toBe(false);
  expect(isAmong(one, [other, same, longer])).toBe(true);
  expect(isAmong(one, [])).toBe(false);
});

const bytes = (text: string) => Buffer.from(text);
const credentials: Credentials = {
  client: [bytes("client"), bytes("client-before")],
  backend: bytes("backend"),
  capability: [bytes("discovery")],
};

describe("tokens", () => {
  it.each([
    ["differ", credentials, undefined],
    ["differ, without discovery", { ...credentials, capability: [] }, undefined],
    ["client and backend", { ...credentials, backend: bytes("client") }, /client token equals the backend/],
    [
      "an older client and backend",
      { ...credentials, backend: bytes("client-before") },
      /client token equals the backend/,
    ],
    [
      "discovery and backend",
      { ...credentials, capability: [bytes("backend")] },
      /capability token equals the backend/,
    ],
    [
      "discovery and an older client",
      { ...credentials, capability: [bytes("x"), bytes("client-before")] },
      /capability token equals the client/,
    ],
  ])("of two roles: %s", (_name, given, problem) => {
    const found = distinctnessProblem(given);
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(problem);
  });
});

describe("whoever shows", () => {
  const read = ["GET", "/v1/executions/x"] as const;
  const discovery = ["GET", "/v1/capabilities"] as const;
  it.each([
    ["a client token may do everything", read, "Bearer client", true],
    ["a client token may discover", discovery, "Bearer client", true],
    ["an older client token may do everything", read, "Bearer client-before", true],
    ["the scheme in any case is heard", read, "bEARER client", true],
    ["the backend token is refused", read, "Bearer backend", false],
    ["the discovery token may discover", discovery, "Bearer discovery", true],
    ["the discovery token may not read", read, "Bearer discovery", false],
    ["the discovery token may not POST", ["POST", "/v1/capabilities"], "Bearer discovery", false],
    ["the discovery token may not add a query", ["GET", "/v1/capabilities?x"], "Bearer discovery", false],
    ["the discovery token may ask for sandboxes", ["GET", "/v1/cells?limit=1"], "Bearer discovery", true],
    ["the discovery token may not ask below", ["GET", "/v1/cells/x"], "Bearer discovery", false],
    ["nothing is refused", read, undefined, false],
    ["no scheme is refused", read, "client", false],
    ["another scheme is refused", read, "Basic client", false],
    ["two spaces is refused", read, "Bearer  client", false],
    ["more behind it is refused", read, "Bearer client x", false],
    ["no token is refused", read, "Bearer ", false],
  ] as const)("%s", (_rule, [method, path], authorization, allowed) => {
    expect(isAuthorized(method, path, authorization, credentials)).toBe(allowed);
  });
});
