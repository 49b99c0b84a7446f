import { describe, expect, it } from "vitest";
import { parseMarker, type ResponseHeaders } from "../../src/core/drain-marker.ts";
import {
  classifyFailure,
  classifyHeaders,
  classifyHeld,
  isRepeatable,
  statedOutcome,
} from "../../src/core/outcome.ts";

function markerOf(name: Parameters<typeof parseMarker>[0]) {
  const marker = parseMarker(name);
  if (marker === undefined) throw new TypeError(`${String(name)} is no marker`);
  return marker;
}

const rules = { marker: markerOf("strict"), retryStatuses: new Set([408, 429, 502, 503, 504]) };
const refusalBody = '{"ok":false,"draining":true}';
const refusal: ResponseHeaders = {
  "content-type": "application/json",
  "retry-after": "1",
  connection: "close",
  "content-length": "28",
};

describe("the drain marker", () => {
  const cases: [string, number, ResponseHeaders, string, boolean, boolean][] = [
    ["the exact refusal", 503, refusal, refusalBody, true, true],
    ["other fields beside it", 503, refusal, '{"draining":true,"x":1}', true, true],
    [
      "content type with a charset",
      503,
      { ...refusal, "content-type": "application/json; charset=utf-8" },
      refusalBody,
      true,
      true,
    ],
    ["close among other tokens", 503, { ...refusal, connection: "x, Close" }, refusalBody, true, true],
    ["another status", 500, refusal, refusalBody, false, false],
    ["no Connection: close", 503, { ...refusal, connection: "keep-alive" }, refusalBody, false, true],
    ["no JSON type", 503, { ...refusal, "content-type": "text/plain" }, refusalBody, false, false],
    ["draining is not true", 503, refusal, '{"draining":"true"}', false, false],
    ["no object", 503, refusal, '["draining"]', false, false],
    ["null", 503, refusal, "null", false, false],
    ["no JSON", 503, refusal, '{"draining":true', false, false],
    ["a longer body", 503, { ...refusal, "content-length": "513" }, refusalBody, false, false],
    ["an unknown length", 503, { ...refusal, "content-length": undefined }, refusalBody, false, false],
    ["two lengths", 503, { ...refusal, "content-length": ["28", "28"] }, refusalBody, false, false],
  ];
  it.each(cases)("%s", (_name, status, headers, body, strict, lax) => {
    expect(markerOf("strict").matches(status, headers, body)).toBe(strict);
    expect(markerOf("body").matches(status, headers, body)).toBe(lax);
    if (strict) expect(markerOf("strict").weigh(status, headers)).toBe("body");
  });

  it.each(["", "Strict", "header:", "header:x", "header:=y", "header:a b=c"])("%o is none", (name) => {
    expect(parseMarker(name)).toBeUndefined();
  });

  it("of a header needs no body", () => {
    const marker = markerOf("header:X-Leaving=yes");
    expect(marker.weigh(503, { "x-leaving": "yes" })).toBe("yes");
    expect(marker.weigh(503, { "x-leaving": "no" })).toBe("no");
    expect(marker.weigh(200, { "x-leaving": "yes" })).toBe("no");
  });
});

describe("classifyHeaders", () => {
  const cases: [string, number, ResponseHeaders, unknown][] = [
    ["200", 200, {}, "answered"],
    ["404", 404, {}, "answered"],
    ["500", 500, {}, "answered"],
    ["429", 429, {}, "app-status"],
    ["504", 504, {}, "app-status"],
    ["a 503 that may be a refusal", 503, refusal, "hold"],
    ["a small JSON 503 that may be Worker refused", 503, { ...refusal, connection: "keep-alive" }, "hold"],
    ["a long 503", 503, { ...refusal, "content-length": "600" }, "app-status"],
    ["a text 503", 503, { "content-length": "4", "content-type": "text/plain" }, "app-status"],
    ["not-run", 502, { "cellkit-outcome": "not-run" }, "refused"],
    ["unknown", 502, { "cellkit-outcome": "unknown" }, "ambiguous"],
    ["not-run of a 404: no deployment there", 404, { "cellkit-outcome": "not-run" }, "refused"],
    ["not-run of a 400: the request is wrong", 400, { "cellkit-outcome": "not-run" }, "answered"],
    ["an outcome that nobody defined", 502, { "cellkit-outcome": "maybe" }, "app-status"],
    ["an outcome on a success", 200, { "cellkit-outcome": "not-run" }, "answered"],
  ];
  it.each(cases)("%s", (_name, status, headers, expected) => {
    const outcome = classifyHeaders(status, headers, true, rules);
    expect(outcome === "hold" ? outcome : outcome.class).toBe(expected);
    if (outcome !== "hold") expect(outcome.drains).toBe(false);
  });

  it("of a HEAD holds nothing", () => {
    expect(classifyHeaders(503, refusal, false, rules)).toMatchObject({ class: "app-status" });
  });

  it("of a held body tells refusal, overload, statement and the rest apart", () => {
    expect(classifyHeld(503, refusal, refusalBody, rules)).toEqual({ class: "refused", drains: true });
    const overloaded = "Worker refused: node is shedding load";
    expect(classifyHeld(503, refusal, overloaded, rules)).toEqual({ class: "overloaded", drains: false });
    const stated = { ...refusal, "cellkit-outcome": "not-run" };
    expect(classifyHeld(503, stated, "{}", rules)).toEqual({ class: "refused", drains: false });
    expect(classifyHeld(503, refusal, "{}", rules)).toEqual({ class: "app-status", drains: false });
  });
});

describe("statedOutcome", () => {
  it.each([
    ["ExampleCDN; error=connection_refused", "not-run"],
    ['ExampleCDN; error=dns_error; details="x"', "not-run"],
    ["ExampleCDN; received-status=503", undefined],
    ["ExampleCDN; error=proxy_internal_error", undefined],
    ["ExampleCDN; error=connection_read_timeout", "unknown"],
    ["inner; error=connection_terminated, outer; error=connection_refused", "unknown"],
    ["", undefined],
  ])("Proxy-Status: %s", (value, expected) => {
    expect(statedOutcome({ "proxy-status": value })).toBe(expected);
  });

  it("Cellkit-Outcome outweighs Proxy-Status", () => {
    const headers = { "cellkit-outcome": "unknown", "proxy-status": "x; error=connection_refused" };
    expect(statedOutcome(headers)).toBe("unknown");
  });
});

describe("classifyFailure", () => {
  it.each([
    [{ started: false, bodySent: false, bodyBytes: 10 }, 0, "not-sent"],
    [{ started: true, bodySent: true, bodyBytes: 10 }, 0, "ambiguous"],
    [{ started: true, bodySent: false, bodyBytes: 10 }, 0, "ambiguous"],
    [{ started: true, bodySent: false, bodyBytes: 10 }, 11, "not-sent"],
    [{ started: true, bodySent: false, bodyBytes: 11 }, 11, "ambiguous"],
    [{ started: true, bodySent: false, bodyBytes: undefined }, 11, "ambiguous"],
    [{ started: true, bodySent: true, bodyBytes: 10 }, 11, "ambiguous"],
  ])("%o, safe below %d: %s", (failure, safeBelowBytes, expected) => {
    expect(classifyFailure(failure, safeBelowBytes)).toBe(expected);
  });
});

describe("isRepeatable", () => {
  it.each([
    ["GET", false, undefined, true],
    ["DELETE", false, undefined, true],
    ["QUERY", false, undefined, true],
    ["POST", false, undefined, false],
    ["PATCH", false, undefined, false],
    ["POST", true, undefined, true],
    ["POST", false, true, true],
    ["GET", true, false, false],
  ])("%s, keyed %s, idempotent %s: %s", (method, keyed, idempotent, expected) => {
    expect(isRepeatable(method, keyed, idempotent)).toBe(expected);
  });
});
