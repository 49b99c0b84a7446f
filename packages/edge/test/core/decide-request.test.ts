import { describe, expect, it } from "vitest";
import { allowedRoutes } from "../../src/core/allowlist.ts";
import { type Decision, decideRequest, maxBodyBytes } from "../../src/core/decide-request.ts";

const routes = allowedRoutes("execution");
const host = ["Host", "edge.example"];

interface Given {
  method?: string;
  target?: string;
  version?: string;
  /** Besides one Host. */
  fields?: string[];
  host?: string[];
}

function decide(given: Given): Decision {
  const { method = "POST", target = "/v1/executions", version = "1.1", fields = [] } = given;
  return decideRequest(routes, { method, target, version, fields: [...(given.host ?? host), ...fields] });
}

/** The refusal, and `!` where the connection is of no further use. */
function verdict(given: Given): string {
  const decision = decide(given);
  return decision.kind === "forward" ? "forward" : `${decision.refusal}${decision.closes ? "!" : ""}`;
}

describe("framing", () => {
  it.each<[string, Given, boolean]>([
    ["no length", {}, false],
    ["length 0", { fields: ["Content-Length", "0"] }, false],
    ["a length", { fields: ["content-LENGTH", "12"] }, true],
    ["leading zeros", { fields: ["Content-Length", "0012"] }, true],
    ["the longest body", { fields: ["Content-Length", String(maxBodyBytes)] }, true],
    ["chunks", { fields: ["Transfer-Encoding", "Chunked"] }, true],
    ["HTTP/1.0", { version: "1.0", host: [] }, false],
    ["an address as Host", { host: ["Host", "[::1]:9443"] }, false],
    ["an empty Host", { host: ["Host", ""] }, false],
  ])("%s is clear", (_, given, hasBody) => {
    expect(decide(given)).toMatchObject({ kind: "forward", hasBody, route: { name: "/v1/executions" } });
  });

  it.each<[string, Given]>([
    ["HTTP/0.9", { version: "0.9" }],
    ["HTTP/2.0", { version: "2.0" }],
    ["no Host", { host: [] }],
    ["two Hosts", { fields: ["host", "edge.example"] }],
    ["a Host with a space", { host: ["Host", "a b"] }],
    ["a Host with a path", { host: ["Host", "a/b"] }],
    ["a Host with a user", { host: ["Host", "a@b"] }],
    ["a Host beyond ASCII", { host: ["Host", "\xffa"] }],
    ["two lengths that agree", { fields: ["Content-Length", "1", "Content-Length", "1"] }],
    ["both kinds of length", { fields: ["Content-Length", "1", "Transfer-Encoding", "chunked"] }],
    ["two codings", { fields: ["Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked"] }],
    ["another coding", { fields: ["Transfer-Encoding", "gzip, chunked"] }],
    ["identity", { fields: ["Transfer-Encoding", "identity"] }],
    ["chunked with a comma", { fields: ["Transfer-Encoding", ",chunked"] }],
    ["chunked with a byte around it", { fields: ["Transfer-Encoding", "\xa0chunked"] }],
    ["chunks in HTTP/1.0", { version: "1.0", fields: ["Transfer-Encoding", "chunked"] }],
    ["an empty length", { fields: ["Content-Length", ""] }],
    ["a length with a sign", { fields: ["Content-Length", "+1"] }],
    ["a negative length", { fields: ["Content-Length", "-1"] }],
    ["a hexadecimal length", { fields: ["Content-Length", "0x10"] }],
    ["a length with underscores", { fields: ["Content-Length", "1_0"] }],
    ["a list of lengths", { fields: ["Content-Length", "5, 5"] }],
    ["a length past all integers", { fields: ["Content-Length", "9".repeat(16)] }],
    ["the body of a GET", { method: "GET", target: "/v1/capabilities", fields: ["Content-Length", "1"] }],
    [
      "the chunks of a DELETE",
      { method: "DELETE", target: "/v1/executions/a", fields: ["Transfer-Encoding", "chunked"] },
    ],
  ])("%s is refused, and the connection ends", (_, given) => expect(verdict(given)).toBe("malformed!"));
});

it("a head is as long as its bytes on the wire", () => {
  const withHead = (bytes: number) => {
    const shortest = "POST /v1/executions HTTP/1.1\r\nHost: edge.example\r\nX: \r\n\r\n".length;
    return verdict({ fields: ["X", "a".repeat(bytes - shortest)] });
  };
  expect([withHead(16_384), withHead(16_385)]).toEqual(["forward", "head-too-large!"]);
});

describe("the order", () => {
  it.each<[string, Given, string]>([
    ["a bad head before the route", { target: "/nowhere", fields: ["Content-Length", "x"] }, "malformed!"],
    ["the route before the length", { target: "/nowhere", fields: ["Content-Length", "99999"] }, "no-route!"],
    [
      "the length before the expectation",
      { fields: ["Content-Length", "65537", "Expect", "x"] },
      "declared-too-large!",
    ],
    ["an unknown expectation", { fields: ["Expect", "200-ok"] }, "expectation!"],
    ["100-continue", { fields: ["Expect", "100-Continue", "Content-Length", "1"] }, "forward"],
  ])("%s", (_, given, expected) => expect(verdict(given)).toBe(expected));
});

describe("routes", () => {
  it.each<[string, Given, string]>([
    ["a path that is not listed, without a body: the connection stays", { target: "/v1/cells" }, "no-route"],
    ["another method", { method: "PUT" }, "no-route"],
    ["a method in small letters", { method: "post" }, "no-route"],
    ["an absolute target", { target: "http://edge.example/v1/executions" }, "no-route"],
    ["a query", { target: "/v1/executions?x" }, "no-route"],
    ["an Upgrade", { fields: ["Upgrade", "websocket", "Connection", "Upgrade"] }, "no-route"],
    ["an Upgrade without Connection", { fields: ["upgrade", "h2c"] }, "no-route"],
    ["an empty Upgrade", { fields: ["Upgrade", ""] }, "no-route"],
  ])("%s", (_, given, expected) => expect(verdict(given)).toBe(expected));
});

describe("fields", () => {
  const forwarded = (fields: string[]) => {
    const decision = decide({ fields });
    return decision.kind === "forward" ? decision.fields : decision.refusal;
  };

  it("what the backend decides by goes on as it came, twice where it came twice", () => {
    const kept = [
      ...["Authorization", "Bearer a  b", "AUTHORIZATION", "second", "Prefer", "respond-async"],
      ...[
        "X-Celln-Backend",
        "http://10.0.0.1:1",
        "x-celln-Parent-Incarnation",
        "blake3:\xe9",
        "Content-Type",
        "application/json",
      ],
      ...["Accept", "*/*", "User-Agent", "u", "X-Other", ""],
    ];
    expect(forwarded(kept)).toEqual(kept);
  });

  it.each([
    "Cookie",
    "Idempotency-Key",
    "X-Idempotency-Key",
    "Forwarded",
    "X-Forwarded-For",
    "x-forwarded-host",
    "X-Forwarded-Anything",
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authorization",
    "Proxy-Authenticate",
    "TE",
    "Trailer",
    "Accept-Encoding",
  ])("%s is removed, in any case of its letters", (name) => {
    for (const each of [name, name.toLowerCase(), name.toUpperCase()])
      expect(forwarded([each, "value", "Prefer", "p"])).toEqual(["Prefer", "p"]);
  });

  it("what Connection names is removed as well", () => {
    expect(
      forwarded([
        "Connection",
        "close, X-Hop ,,",
        "x-hop",
        "1",
        "Connection",
        "Other",
        "Other",
        "2",
        "X-Stays",
        "3",
      ]),
    ).toEqual(["X-Stays", "3"]);
  });

  it.each([
    "Authorization",
    "Prefer",
    "Content-Length",
    "Content-Type",
    "Host",
    "X-Celln-Backend",
    "close, x-celln-anything",
  ])("Connection: %s would change what the request means: refused", (value) =>
    expect(verdict({ fields: ["connection", value] })).toBe("malformed!"),
  );
});
