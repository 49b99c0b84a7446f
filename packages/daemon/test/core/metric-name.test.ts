import { expect, it } from "vitest";
import { type MetricKind, metricName } from "../../src/core/metric-name.ts";

it.each<[MetricKind, string, string]>([
  ["counter", "requests_total", "celld_requests_total"],
  ["gauge", "cells", "celld_cells"],
  ["histogram", "request_duration_seconds", "celld_request_duration_seconds"],
])("a %s named %s is %s", (kind, name, full) => {
  expect(metricName(kind, "celld_", name)).toBe(full);
});

it.each<[string, MetricKind, string, string, RegExp]>([
  ["a counter that does not end in _total", "counter", "celld_", "requests", /a counter ends in _total/],
  ["a gauge that does", "gauge", "celld_", "cells_total", /only counters end in _total, this is a gauge/],
  ["milliseconds", "histogram", "celld_", "request_duration_ms", /use the base unit seconds, not ms/],
  ["megabytes", "gauge", "celld_", "memory_mb", /use the base unit bytes, not mb/],
  ["camel case", "gauge", "celld_", "openSockets", /snake_case/],
  ["the prefix twice", "gauge", "celld_", "celld_cells", /leave it out/],
  ["a prefix without its line", "gauge", "celld", "cells", /prefix must be lower case and end in "_"/],
])("refuses %s", (_, kind, prefix, name, message) => {
  expect(() => metricName(kind, prefix, name)).toThrow(message);
});
