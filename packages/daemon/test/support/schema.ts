import { z } from "zod";
import { logOptions } from "../../src/index.ts";

/** A schema with one option of every kind. */
export const schema = z.strictObject({
  bucket: z
    .string()
    .regex(/^s3:\/\//, "must be s3://BUCKET[/PREFIX]")
    .meta({
      description: "Where cells live.",
      env: "TOY_BUCKET",
      section: "Storage",
      placeholder: "URL",
      emptyIsUnset: true,
    }),
  region: z
    .string()
    .default("us-east-1")
    .meta({
      description: "The bucket's region.",
      env: ["AWS_REGION", "AWS_DEFAULT_REGION"],
      section: "Storage",
      emptyIsUnset: true,
    }),
  secretKey: z.string().min(4).optional().meta({
    description: "The key's secret half.",
    env: "TOY_SECRET",
    section: "Storage",
    secret: true,
    flag: false,
  }),
  shutdownDrainMs: z
    .int()
    .min(1)
    .max(600_000)
    .default(25_000)
    .meta({ description: "How long a drain may take.", env: "TOY_SHUTDOWN_DRAIN_MS" }),
  weight: z.number().optional().meta({ description: "Share of the load.", defaultText: "number of CPUs" }),
  reload: z.boolean().default(false).meta({ description: "Reload on change.", env: "TOY_RELOAD" }),
  mode: z.enum(["refuse", "serve"]).default("refuse").meta({ description: "What a drain does first." }),
  peer: z.array(z.string()).default([]).meta({ description: "A peer's address.", env: "TOY_PEERS" }),
  advertise: z
    .string()
    .transform((text) => {
      const [host = "", port = ""] = text.split(":");
      return { host, port: Number(port) };
    })
    .optional()
    .meta({ description: "Where others reach it.", env: "TOY_ADVERTISE", placeholder: "HOST:PORT" }),
  ...logOptions("TOY_"),
});
