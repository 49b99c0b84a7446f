// A backend that neither accepts nor refuses a connection.
import { createLogger } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { checkEdge } from "../src/check.ts";
import { DeafBackend } from "./support/deaf-backend.ts";
import { requestBytes, TestEdge } from "./support/edge.ts";

it("is dialled for so long, and then a 502", async () => {
  await using deaf = await DeafBackend.open();
  await using edge = await TestEdge.open({ limits: { dialTimeoutMs: 200 }, origin: deaf.origin });
  using client = await edge.client();
  client.send(requestBytes("GET /v1/capabilities"));
  // Forty times as long; a client of HTTP that nobody tells waits for ten seconds.
  let isLate = false;
  const rival = setTimeout(() => {
    isLate = true;
  }, 8_000);
  expect((await client.answers()).map(({ status }) => status)).toEqual([502]);
  clearTimeout(rival);
  expect(isLate).toBe(false);
  expect(edge.log.join("")).toContain('"reason":"UND_ERR_CONNECT_TIMEOUT"');
});

it("is what --check tells of after its own time", async () => {
  await using deaf = await DeafBackend.open();
  const files = { certPath: "/nowhere/tls.crt", keyPath: "/nowhere/tls.key", clientCaPath: undefined };
  const log = createLogger({ name: "edge", stream: { write: () => undefined } });
  await expect(checkEdge({ files, backend: deaf.origin, dialTimeoutMs: 200, log })).rejects.toMatchObject({
    problems: [
      expect.stringContaining("/nowhere/tls.crt"),
      `the backend ${deaf.origin.origin} did not accept a connection within 200 ms`,
    ],
  });
});
