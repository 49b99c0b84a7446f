import { describe, expect, it } from "vitest";
import { alwaysFirst, ask, fleetOf, raw } from "./support/fleet.ts";
import { startNode, startRawNode } from "./support/node-server.ts";

describe("what a server states of an answer", () => {
  const cases: [string, string, string[], string[]][] = [
    [
      "not-run: another node, any method",
      "502 Bad Gateway",
      ["cellkit-outcome: not-run"],
      ["refused", "answered"],
    ],
    ["unknown: a POST stays", "503 Service Unavailable", ["cellkit-outcome: unknown"], ["ambiguous"]],
    [
      "a proxy never connected",
      "502 Bad Gateway",
      ["proxy-status: gw; error=connection_refused"],
      ["refused", "answered"],
    ],
    [
      "a proxy lost the answer",
      "502 Bad Gateway",
      ["proxy-status: gw; error=connection_terminated"],
      ["ambiguous"],
    ],
    [
      "not-run of a request that is itself wrong",
      "400 Bad Request",
      ["cellkit-outcome: not-run"],
      ["answered"],
    ],
  ];
  it.each(cases)("decides: %s", async (_name, status, headers, classes) => {
    await using a = await startRawNode((socket) => socket.write(raw(status, headers, "said")));
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    expect((await ask(fleet, { method: "POST", body: "x" })).classes).toEqual(classes);
    expect(fleet.nodes[0]?.state).toBe("admitted");
  });
});
