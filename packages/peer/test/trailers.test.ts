// Fields behind a body: an application's pass, and no word of nodes does.
import { expect, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { dialTunnel } from "../src/dial-tunnel.ts";
import { startNode } from "./support/node.ts";
import { quiet, testKey } from "./support/records.ts";

const head =
  "POST http://cell/ HTTP/1.1\r\nhost: cell\r\nx-cells-scope: A:b\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n";

test("trailers of a request and of its answer lose what only nodes may say", async () => {
  const seen: object[] = [];
  const node = await startNode({
    onFetch: async (request, response) => {
      expect([request.rawTrailers, request.trailers]).toEqual([[], {}]);
      request.resume();
      await until("end of the body", () => request.complete);
      seen.push(request.rawTrailers, request.trailers, request.trailersDistinct);
      response.write("body");
      const given = { "X-Cells-Route-Error": "stale-owner", "x-own": ["1", "2"], connection: "close" };
      if (seen.length === 3) response.addTrailers(given as never);
      else
        response.addTrailers([
          ["x-celld-a", "1"],
          ["x-other", "2"],
        ]);
      response.end();
    },
  });
  const tunnel = quiet(
    await dialTunnel({ ...node, kind: "do", key: testKey, self: "c", destination: "owner" }),
  );
  let text = "";
  tunnel.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  for (const trailers of ["x-own: 1\r\nx-own: 2\r\n\r\n", "x-other: 2\r\n\r\n"]) {
    text = "";
    tunnel.write(`${head}X-Cells-Scope: A:c\r\nX-Own: 1\r\nx-celld-x: 2\r\nx-own: 3\r\n\r\n`);
    await until("the answer", () => /\r\n0\r\n(.*\r\n)?\r\n$/s.test(text));
    expect(text.split("\r\n0\r\n")[1]).toBe(trailers);
  }
  const each = [["X-Own", "1", "x-own", "3"], { "x-own": "1, 3" }, { "x-own": ["1", "3"] }];
  expect(seen).toEqual([...each, ...each]);
  tunnel.destroy();
});
