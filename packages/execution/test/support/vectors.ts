import { readFileSync } from "node:fs";
import { z } from "zod";

const json = z.unknown();
const capabilityState = z.object({ state: z.string(), available: z.boolean() });

const schema = z.object({
  tokens: z.object({ client: z.string(), capability: z.string() }),
  http: z.array(
    z.object({
      name: z.string(),
      request: z.object({ method: z.string(), path: z.string() }),
      backendTranscript: z.array(z.object({ method: z.string(), path: z.string() })).default([]),
      expect: z.object({ status: z.number(), json: json.optional() }).nullish(),
      apiServerVerdict: capabilityState.extend({ parentRouting: z.boolean().optional() }).optional(),
    }),
  ),
  tokenFiles: z.array(
    z.object({ name: z.string(), fileBase64: z.string(), valid: z.boolean(), token: z.string().nullish() }),
  ),
  executionIds: z.array(z.object({ id: z.string(), routerAccepts: z.boolean(), edgeAccepts: z.boolean() })),
  requestValidation: z.array(
    z.object({
      name: z.string(),
      request: json,
      problems: z.array(z.object({ code: z.string(), field: z.string() })),
    }),
  ),
  capabilities: z.object({
    nodeEligibility: z.array(z.object({ name: z.string(), node: json, eligible: z.boolean() })),
  }),
  apiServer: z.object({
    configuration: z.array(
      z.object({
        name: z.string(),
        env: z.record(z.string(), z.string()),
        state: z.string(),
        contactsRouter: z.literal(false),
      }),
    ),
    responses: z.array(
      capabilityState.extend({
        name: z.string(),
        status: z.number(),
        body: z.string().optional(),
        bodyRepeat: z.object({ char: z.string(), count: z.number() }).optional(),
      }),
    ),
  }),
});

/** The parts of the shared vectors that concern clients. */
export const vectors = schema.parse(
  JSON.parse(readFileSync(new URL("../vectors/execution-vectors.json", import.meta.url), "utf8")),
);

/** A vector's request by name, as plain JSON. */
export function requestVector(name: string): Record<string, unknown> {
  const found = vectors.requestValidation.find((vector) => vector.name === name);
  return structuredClone(z.record(z.string(), z.unknown()).parse(found?.request));
}
