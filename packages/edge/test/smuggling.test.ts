// Every hostile request over TLS against an edge whose backend keeps each byte. Whatever the edge makes of one, the backend gets
// nothing, or whole requests that read in one way only.
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { TestEdge } from "./support/edge.ts";
import { hostileRequests } from "./support/hostile-requests.ts";

let edge: TestEdge;
beforeAll(async () => {
  edge = await TestEdge.open({ limits: { lingerMs: 20 } });
});
afterAll(() => edge.close());
beforeEach(() => {
  edge.backend.requests.length = 0;
});

/** Asked last on a connection that is kept: its answer comes after all others. */
const last = "GET /v1/executions/last HTTP/1.1\r\nHost: e\r\n\r\n";

it.each(hostileRequests)("$name: $statuses", async ({ bytes, statuses, forwarded = [], keeps = false }) => {
  using client = await edge.client();
  client.send(bytes);
  if (keeps) client.send(last);
  const answers = keeps ? await client.answers(statuses.length + 1) : await client.closed();
  expect(answers.map(({ status }) => status)).toEqual([...statuses, ...(keeps ? [200] : [])]);
  const seen = edge.backend.requests.filter(({ line }) => !line.includes("/last "));
  expect(seen.map(({ body }) => body.toString("latin1"))).toEqual(forwarded);
  expect(edge.backend.problems).toEqual([]);
});

it("there are enough of them, and no two are the same", () => {
  expect(hostileRequests.length).toBeGreaterThanOrEqual(200);
  expect(new Set(hostileRequests.map(({ bytes }) => bytes)).size).toBe(hostileRequests.length);
  expect(new Set(hostileRequests.map(({ name }) => name)).size).toBe(hostileRequests.length);
});
