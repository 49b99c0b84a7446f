import { expect, it } from "vitest";
import { bearer, requestBytes, TestEdge } from "./support/edge.ts";

it("a request that is allowed reaches the backend once, with the backend's Host, and its answer comes back", async () => {
  await using edge = await TestEdge.open();
  using client = await edge.client();
  client.send(requestBytes("POST /v1/executions", [`Authorization: Bearer ${bearer}`], '{"a":1}'));
  expect(await client.answers()).toMatchObject([
    { status: 200, fields: { "content-type": "application/json" }, body: '{"ok":true}' },
  ]);
  expect(edge.backend.problems).toEqual([]);
  expect(edge.backend.requests).toMatchObject([
    { line: "POST /v1/executions HTTP/1.1", body: Buffer.from('{"a":1}') },
  ]);
  expect(edge.backend.requests[0]?.fields).toEqual([
    ["host", edge.backend.origin.authority],
    ["connection", "keep-alive"],
    ["authorization", `Bearer ${bearer}`],
    ["content-length", "7"],
  ]);
});
