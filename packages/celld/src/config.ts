// What a node is told: flags, environment, defaults. One schema; `--help` and the README's table come from it.

import { isIP } from "node:net";
import { type Address, addressOption, logOptions, storeOptions } from "@cellkit/daemon";
import { z } from "zod";
import { processName } from "./process-name.ts";

/** `s3://BUCKET/PREFIX`; a bare name is an S3 bucket's, as the operator's pods give it. */
function bucketUrl() {
  return z.string().transform((text, context): string => {
    const url = text.includes(":") ? text : `s3://${text}`;
    if (/^s3:\/\/[^/\s:]+(\/\S*)?$/.test(url)) return url;
    const message = text.startsWith("file:")
      ? "a node needs an object store that every node reaches: serve the directory with `cellkit bucket serve DIR` and give that bucket's s3:// address and --endpoint"
      : /^(gs|az):/.test(text)
        ? "this celld keeps its cells on S3 stores only: give s3://BUCKET and, for a store other than AWS, --endpoint"
        : "must be s3://BUCKET or s3://BUCKET/PREFIX";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

const sections = { storage: "Storage", listeners: "Listeners", node: "This node" } as const;

/** Each option by itself. */
const celldSchema = z.strictObject({
  bucket: bucketUrl().meta({
    description: "The fleet's bucket. Every node of a fleet is given the same one.",
    env: "CELLD_BUCKET",
    placeholder: "s3://BUCKET/PREFIX",
    section: sections.storage,
    emptyIsUnset: true,
  }),
  ...storeOptions(sections.storage),
  listen: addressOption().prefault("127.0.0.1:8080").meta({
    description: "Where Workers are served. An address that is not loopback needs --internal-listen as well.",
    env: "CELLD_ADDR",
    placeholder: "HOST:PORT",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  internalListen: addressOption().prefault("127.0.0.1:0").meta({
    description:
      "Where peers and the operator are served. Nothing outside the fleet may reach it. Port 0 takes a free one.",
    env: "CELLD_INTERNAL_ADDR",
    placeholder: "HOST:PORT",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  advertise: addressOption(advertiseProblem).optional().meta({
    description: "The address at which peers reach --internal-listen. Needed when that is 0.0.0.0 or [::].",
    env: "CELLD_ADVERTISE",
    placeholder: "HOST:PORT",
    defaultText: "the internal listener's own address",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  roadPort: z.number().int().min(1).max(65_535).default(8082).meta({
    description:
      "The port of the relays on 127.77.0.0/16, through which the nodes' runtimes reach each other. One for the whole fleet.",
    env: "CELLD_ROAD_PORT",
    section: sections.listeners,
  }),
  roadRelay: z.boolean().default(true).meta({
    description:
      "Relay for this machine, on 0.0.0.0 and --road-port; what does not come to a node's 127.77.x.y is reset. Several nodes on one machine share the port. They do better with --no-road-relay and one `cellkit road` beside them, which no node's end cuts.",
    env: "CELLD_ROAD_RELAY",
    section: sections.listeners,
  }),
  operatorApi: z.enum(["signed", "open"]).default("signed").meta({
    description:
      "Who may use /cell, /do, /evict and /shutdown of the internal listener: this machine, and others who sign with the fleet's key (signed), or whoever reaches it (open).",
    env: "CELLD_OPERATOR_API",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  unsafePublicAdvertise: z.boolean().default(false).meta({
    description: "Allow --advertise to be a public IP address.",
    env: "CELLD_UNSAFE_PUBLIC_ADVERTISE",
    section: sections.listeners,
  }),
  node: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . -")
    .default(processName)
    .meta({
      description:
        "The node's name, unique in the fleet. Give each place a fixed one, so that a restart is known as the same node.",
      env: "CELLD_NODE",
      defaultText: "host name and process id",
      section: sections.node,
      emptyIsUnset: true,
    }),
  watch: z.string().optional().meta({
    description:
      "The data directory: caches, and who ran here last. A restart on the same one takes over at once.",
    env: "CELLD_WATCH",
    placeholder: "DIR",
    defaultText: "a directory of its own under the system's temporary one",
    section: sections.node,
    emptyIsUnset: true,
  }),
  varsFile: z.string().optional().meta({
    description:
      "Vars of the Worker in place of the deployment's, as JSON or NAME=VALUE lines. Read when the node starts.",
    env: "CELLD_VARS_FILE",
    placeholder: "FILE",
    section: sections.node,
    emptyIsUnset: true,
  }),
  secretsFile: z.string().optional().meta({
    description:
      "Secrets of the Worker, as JSON or NAME=VALUE lines. They win over vars. Read when the node starts.",
    env: "CELLD_SECRETS_FILE",
    placeholder: "FILE",
    section: sections.node,
    emptyIsUnset: true,
  }),
  shutdownDrainMs: z.number().int().min(1_000).max(3_600_000).default(25_000).meta({
    description: "How long a drain may take before what is left is cut off and the exit code is 4.",
    env: "CELLD_SHUTDOWN_DRAIN_MS",
    section: sections.node,
  }),
  ...logOptions("CELLD_"),
});

/** The checked configuration of a node. */
export type CelldConfig = z.output<typeof celldSchema>;

/** A rule that spans several options. */
interface Rule {
  /** The option that the problem names. */
  key: keyof CelldConfig;
  /** The rule is looked at once these are good, whatever else is wrong. */
  reads: readonly (keyof CelldConfig)[];
  problem: (config: CelldConfig) => string | undefined;
}

const rules: readonly Rule[] = [
  {
    key: "internalListen",
    reads: ["listen", "internalListen"],
    problem: ({ listen, internalListen }) =>
      isLoopback(listen.host) || internalListen.port !== 0
        ? undefined
        : "needs a port of its own with a --listen that is not loopback: peers and the operator use it",
  },
  {
    key: "internalListen",
    reads: ["advertise", "internalListen"],
    problem: ({ advertise, internalListen }) =>
      advertise === undefined || internalListen.port !== 0
        ? undefined
        : "needs a port of its own with --advertise: peers are sent to that very listener",
  },
  {
    key: "advertise",
    reads: ["advertise", "internalListen"],
    problem: ({ advertise, internalListen }) =>
      advertise !== undefined || !isUnspecified(internalListen.host)
        ? undefined
        : `is needed with --internal-listen ${internalListen.host}: peers cannot dial that address`,
  },
  {
    key: "advertise",
    reads: ["advertise", "unsafePublicAdvertise"],
    problem: ({ advertise, unsafePublicAdvertise }) =>
      advertise === undefined || unsafePublicAdvertise || !isPublicIp(advertise.host)
        ? undefined
        : `${advertise.host} is a public address, and the internal listener must not be reachable from outside; use a private one, or --unsafe-public-advertise`,
  },
];

/** The options of `cellkit-celld`, with the rules that span several. */
export const celldOptions = rules.reduce(
  (schema, { key, reads, problem }) =>
    schema.refine((config) => problem(config) === undefined, {
      path: [key],
      when: ({ issues }) => !issues.some(({ path }) => reads.some((name) => name === path?.[0])),
      error: ({ input }) => problem(input as CelldConfig),
    }),
  celldSchema,
);

function advertiseProblem({ host, port }: Address): string | undefined {
  if (port === 0) return "needs the port that peers dial, not 0";
  if (isUnspecified(host) || host === "255.255.255.255")
    return `${host} is not an address that peers can dial`;
  if (/^(22[4-9]|23\d)\./.test(host) || /^ff/i.test(host)) return `${host} is a multicast address`;
  return undefined;
}

function isUnspecified(host: string): boolean {
  return host === "0.0.0.0" || /^[0:]+$/.test(host);
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** An IP literal outside loopback, RFC 1918, link-local, 100.64.0.0/10 (RFC 6598), IPv6 ULA and IPv6 link-local. Names are not resolved. */
function isPublicIp(host: string): boolean {
  if (isIP(host) === 4) {
    return !/^(127\.|10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(
      host,
    );
  }
  return isIP(host) === 6 && host !== "::1" && !/^(f[cd]|fe[89ab])/i.test(host);
}
