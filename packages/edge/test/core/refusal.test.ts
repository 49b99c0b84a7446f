import { expect, it } from "vitest";
import { ownAnswer, type Refusal, refusals } from "../../src/core/refusal.ts";

it.each<[Refusal, number, string]>([
  ["no-route", 404, "configured protocol route required"],
  ["declared-too-large", 413, "parent request too large"],
  ["body-too-large", 413, "invalid or oversized parent request"],
  ["unavailable", 502, "parent owner unavailable; reconcile original identity"],
])("%s is told as the original tells it", (refusal, status, text) => {
  expect(ownAnswer(refusal)).toEqual({ status, contentType: "text/plain; charset=utf-8", body: `${text}\n` });
});

it.each(Object.keys(refusals) as Refusal[])("%s has a status of its kind and an ASCII text", (refusal) => {
  const { status, text } = refusals[refusal];
  expect(status).toBeGreaterThanOrEqual(400);
  expect(text).toMatch(/^[ -~]+$/);
});

it.each([
  ["application/json", true],
  ["Application/JSON", true],
  ["text/html, application/json;q=0.5", true],
  [" application/json ; charset=utf-8", true],
  ["application/json;q=0.01", true],
  [undefined, false],
  ["", false],
  ["*/*", false],
  ["application/*", false],
  ["text/plain", false],
  ["application/json;q=0", false],
  ["application/json; q=0.000", false],
  ["application/jsonp", false],
])("with Accept %j JSON is %s", (accept, isJson) => {
  const answer = ownAnswer("no-route", accept);
  expect(answer.contentType === "application/json").toBe(isJson);
  if (isJson) expect(JSON.parse(answer.body)).toEqual({ error: "configured protocol route required" });
});
