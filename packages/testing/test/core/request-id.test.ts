import { expect, it } from "vitest";
import { requestIdOf } from "../../src/core/request-id.ts";

const deep = (levels: number) => `{"id":"a","x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;

it.each([
  ['{"id":"b","id":"a"}', "a"],
  ['{"id":"a","x":1,"x":2}', "a"],
  ['{"id":"a","x":1e308}', "a"],
  ['{"id":"a","x":-0}', "a"],
  [`{"id":"a","x":${"9".repeat(308)}}`, "a"],
  [deep(127), "a"],
  [deep(128), undefined],
  [deep(30_000), undefined],
  ['{"id":"a","x":1e999}', undefined],
  ['{"id":"a","x":[-1.5e999]}', undefined],
  [`{"id":"a","x":${"9".repeat(310)}}`, undefined],
  ['{"id":"a","x":"\\ud800"}', undefined],
  ['{"id":"a","\\udc00":1}', undefined],
  ['{"id":"a"} x', undefined],
  ['{"id":"a","id":7}', undefined],
  ['{"id":".."}', undefined],
  ['["a"]', undefined],
  ["null", undefined],
  ['\ufeff{"id":"a"}', undefined],
])("the id in %.60s is %j, as for a router", (body, id) => {
  expect(requestIdOf(Buffer.from(body))).toBe(id);
});
