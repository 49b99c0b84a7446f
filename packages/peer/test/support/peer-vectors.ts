import { readFileSync } from "node:fs";
import { z } from "zod";
import { FleetKey } from "../../src/core/fleet-key.ts";

const body = z.discriminatedUnion("encoding", [
  z.object({ encoding: z.literal("empty") }),
  z.object({ encoding: z.literal("utf8"), data: z.string() }),
  z.object({ encoding: z.literal("hex"), data: z.string() }),
  z.object({ encoding: z.literal("repeat"), unit: z.string(), length: z.number() }),
]);

const headers = z.record(z.string(), z.string());
const version = z.union([z.literal(2), z.literal(5)]);

const step = z.object({
  nowMs: z.number(),
  method: z.string(),
  pathAndQuery: z.string(),
  headers,
  body,
  expect: z.union([
    z.object({ ok: z.literal(true) }).strict(),
    z.object({ error: z.string(), status: z.number(), message: z.string() }).strict(),
  ]),
});

const vectors = z.object({
  constants: z.object({ headers: z.record(z.string(), z.string()) }),
  secretObject: z.object({
    accepted: z.array(z.object({ json: z.string(), keyHex: z.string() })),
    rejected: z.array(z.object({ json: z.string(), reason: z.string() })),
  }),
  signing: z.array(
    z.object({
      name: z.string(),
      protocolVersion: version,
      keyHex: z.string(),
      method: z.string(),
      pathAndQuery: z.string(),
      body,
      source: z.string(),
      target: z.string(),
      timestampMs: z.string(),
      nonce: z.string(),
      expected: z.object({
        bodySha256: z.string(),
        canonical: z.string(),
        canonicalSha256: z.string(),
        signature: z.string(),
        headers,
      }),
    }),
  ),
  verifying: z.array(
    z.object({
      name: z.string(),
      receiver: z.object({
        keyHex: z.string(),
        nodeId: z.string(),
        protocolVersion: version,
        maxReplayEntries: z.number().optional(),
      }),
      steps: z.array(step),
    }),
  ),
  lenient: z.array(step.extend({ name: z.string() })),
  probes: z.array(
    z.object({
      name: z.string(),
      seedHex: z.string(),
      publicKeyHex: z.string(),
      node: z.string(),
      advertise: z.string(),
      challenge: z.string(),
      payload: z.string(),
      response: z.object({
        version: z.number(),
        node: z.string(),
        advertise: z.string(),
        challenge: z.string(),
        signature: z.string(),
      }),
    }),
  ),
  objectIds: z.array(
    z.object({
      script: z.string().optional(),
      className: z.string(),
      name: z.string(),
      namespaceKey: z.string(),
      classKeyHex: z.string(),
      id: z.string(),
      scope: z.string(),
    }),
  ),
});

/** The vectors that came with the protocol, byte for byte as they were published. */
export const peerVectors = vectors.parse(
  JSON.parse(readFileSync(new URL("../vectors/peer-vectors.json", import.meta.url), "utf8")),
);

/** The bytes that a vector's body stands for. */
export function bodyBytes(source: z.infer<typeof body>): Uint8Array {
  switch (source.encoding) {
    case "empty":
      return new Uint8Array();
    case "utf8":
      return Buffer.from(source.data, "utf8");
    case "hex":
      return Buffer.from(source.data, "hex");
    case "repeat":
      return Buffer.alloc(source.length, Buffer.from(source.unit, "hex"));
  }
}

export function keyOf(hex: string): FleetKey {
  return new FleetKey(Buffer.from(hex, "hex"));
}
