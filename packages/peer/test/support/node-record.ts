import type { NodeRecord } from "../../src/node-record.ts";
import type { NodeDescription } from "../../src/node-registration.ts";

/** A complete record; what a test is about is given. */
export function nodeRecord(given: Partial<NodeRecord> & { node: string }): NodeRecord {
  return { expiresMs: 1_000_000, ...description(given) };
}

/** What a node says of itself. */
export function description(given: Partial<NodeDescription> & { node: string }): NodeDescription {
  return {
    addr: "10.0.0.1:8081",
    peerProtocol: 5,
    probePublicKey: "ab".repeat(32),
    extensions: ["records-1"],
    load: {
      sampledMs: 1,
      residentCells: 2,
      hostWebsockets: 3,
      rssBytes: 4,
      inUseBytes: null,
      cpuPercentX100: 5,
      openFds: 6,
      fdLimit: 7,
      pressured: false,
      shedCells: 8,
      restoring: 9,
    },
    ...given,
  };
}
