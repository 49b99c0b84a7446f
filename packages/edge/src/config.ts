// What an edge is told: flags, environment, defaults. One schema; `--help` and the README's table come from it.
import { isAbsolute } from "node:path";
import { addressOption, logOptions } from "@cellkit/daemon";
import { z } from "zod";
import { parseBackendOrigin } from "./core/backend-origin.ts";

const sections = { mode: "What passes", tls: "TLS", listeners: "Listeners" } as const;

/** An absolute path of a file, so that the working directory decides nothing. */
function absolutePath() {
  return z
    .string()
    .refine(isAbsolute, "absolute TLS certificate and key required: give the file's whole path, from / on");
}

const edgeSchema = z.strictObject({
  backend: z
    .string()
    .transform((text, context) => {
      const origin = parseBackendOrigin(text);
      if (origin !== undefined) return origin;
      const message =
        "fixed literal loopback HTTP dispatcher origin required: http://127.0.0.1:PORT or http://[::1]:PORT, with nothing after it";
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .meta({
      description: "The router or dispatcher on this machine: a literal loopback address with its port.",
      env: "CELLKIT_EDGE_BACKEND",
      placeholder: "http://127.0.0.1:PORT",
      section: sections.listeners,
      emptyIsUnset: true,
    }),
  listen: addressOption().prefault("127.0.0.1:9443").meta({
    description: "Where clients are served.",
    env: "CELLKIT_EDGE_LISTEN",
    placeholder: "HOST:PORT",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  internalListen: addressOption().prefault("127.0.0.1:0").meta({
    description: "Where /health and /metrics are served, in plain HTTP. Port 0 takes a free one.",
    env: "CELLKIT_EDGE_INTERNAL_LISTEN",
    placeholder: "HOST:PORT",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  maxConnections: z.number().int().min(1).max(65_536).default(1_024).meta({
    description: "Client connections served at a time. Further ones get 503.",
    env: "CELLKIT_EDGE_MAX_CONNECTIONS",
    section: sections.listeners,
  }),
  tlsCert: absolutePath().meta({
    description: "The certificate, PEM, with those that lead to its CA. Read again when it changes.",
    env: "CELLKIT_EDGE_TLS_CERT",
    placeholder: "/FILE",
    section: sections.tls,
    emptyIsUnset: true,
  }),
  tlsKey: absolutePath().meta({
    description: "Its private key, PEM. Read again when it changes.",
    env: "CELLKIT_EDGE_TLS_KEY",
    placeholder: "/FILE",
    section: sections.tls,
    emptyIsUnset: true,
  }),
  clientCa: absolutePath().optional().meta({
    description: "Serve only clients with a certificate of these CAs, PEM. Read again when it changes.",
    env: "CELLKIT_EDGE_CLIENT_CA",
    placeholder: "/FILE",
    section: sections.tls,
    emptyIsUnset: true,
  }),
  executionRouter: z.boolean().default(false).meta({
    description: "Let executions through, and nothing else. Without it parents pass, and nothing else.",
    env: "CELLKIT_EDGE_EXECUTION_ROUTER",
    section: sections.mode,
  }),
  scopedReceiver: z.boolean().default(false).meta({
    description: "Scoped operations: not served yet, so refused.",
    env: "CELLKIT_EDGE_SCOPED_RECEIVER",
    section: sections.mode,
  }),
  strictIds: z.boolean().default(false).meta({
    description:
      "Take the execution ids that the original edge takes: 1 to 128, the first a letter or digit, with ':'. Without it, those that the router takes.",
    env: "CELLKIT_EDGE_STRICT_IDS",
    section: sections.mode,
  }),
  check: z.boolean().default(false).meta({
    description:
      "Check flags, certificate, its dates, and that the backend accepts a connection; then end with 0 or 1. Nothing listens.",
    env: "CELLKIT_EDGE_CHECK",
    section: sections.mode,
  }),
  ...logOptions("CELLKIT_EDGE_"),
});

/** The checked configuration of an edge. */
export type EdgeConfig = z.output<typeof edgeSchema>;

/** The options of `cellkit-edge`. */
export const edgeOptions = edgeSchema
  .refine(({ executionRouter, scopedReceiver }) => !(executionRouter && scopedReceiver), {
    path: ["executionRouter"],
    error:
      "a listener has one mode: not --execution-router and --scoped-receiver; start a second edge on another port",
  })
  .refine(({ scopedReceiver }) => !scopedReceiver, {
    path: ["scopedReceiver"],
    error: "scoped operations are not served yet; leave the flag out",
  })
  .refine(({ strictIds, executionRouter }) => executionRouter || !strictIds, {
    path: ["strictIds"],
    error: "is about execution ids: give --execution-router as well, or leave it out",
  });
