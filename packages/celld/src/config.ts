// What a node is told: flags, environment, defaults. One schema; `--help` and the README's table come from it.

import { isIP } from "node:net";
import { hostname } from "node:os";
import { logOptions, type OtherVariable } from "@cellkit/daemon";
import { z } from "zod";

/** A host and a port, as a flag gives them. */
export interface Address {
  host: string;
  port: number;
}

const addressPattern = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/;

/** `HOST:PORT` or `[IPv6]:PORT`. */
function address(check: (value: Address) => string | undefined = () => undefined) {
  return z.string().transform((text, context): Address => {
    const match = addressPattern.exec(text);
    const port = Number(match?.[3]);
    if (match === null || port > 65_535) {
      context.addIssue({
        code: "custom",
        message: `"${text}" is not HOST:PORT (an IPv6 address goes in brackets)`,
      });
      return z.NEVER;
    }
    const value = { host: match[1] ?? match[2] ?? "", port };
    const problem = check(value);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
    return value;
  });
}

const sections = { storage: "Storage", listeners: "Listeners", node: "This node" } as const;

/** The options of `cellkit-celld` ({@link celldOptions} has the rules that span several). */
export const celldSchema = z.strictObject({
  bucket: z
    .string()
    .refine((url) => !url.startsWith("file:"), {
      message:
        "a node needs an object store that every node reaches: serve the directory with `cellkit bucket serve DIR` and give that bucket's s3:// address and --endpoint",
    })
    .refine((url) => url.startsWith("file:") || /^s3:\/\/[^/\s]+(\/\S*)?$/.test(url), {
      message: "must be s3://BUCKET or s3://BUCKET/PREFIX",
    })
    .meta({
      description: "The fleet's bucket. Every node of a fleet is given the same one.",
      env: "CELLD_BUCKET",
      placeholder: "s3://BUCKET/PREFIX",
      section: sections.storage,
      emptyIsUnset: true,
    }),
  endpoint: z
    .url({ protocol: /^https?$/, message: "must be an http:// or https:// URL" })
    .optional()
    .meta({
      description:
        "The S3 endpoint, for stores other than AWS. With it the bucket's name goes into the path.",
      env: "S3_ENDPOINT",
      placeholder: "URL",
      section: sections.storage,
      emptyIsUnset: true,
    }),
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be a region name, for example eu-central-1")
    .default("us-east-1")
    .meta({
      description: "The bucket's region.",
      env: ["AWS_REGION", "AWS_DEFAULT_REGION"],
      section: sections.storage,
      emptyIsUnset: true,
    }),
  listen: address().prefault("127.0.0.1:8080").meta({
    description: "Where Workers are served. An address that is not loopback needs --internal-listen as well.",
    env: "CELLD_ADDR",
    placeholder: "HOST:PORT",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  internalListen: address().prefault("127.0.0.1:0").meta({
    description:
      "Where peers and the operator are served. Nothing outside the fleet may reach it. Port 0 takes a free one.",
    env: "CELLD_INTERNAL_ADDR",
    placeholder: "HOST:PORT",
    section: sections.listeners,
    emptyIsUnset: true,
  }),
  advertise: address(advertiseProblem).optional().meta({
    description: "The address at which peers reach --internal-listen. Needed when that is 0.0.0.0 or [::].",
    env: "CELLD_ADVERTISE",
    placeholder: "HOST:PORT",
    defaultText: "the internal listener's own address",
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
    .default(
      () =>
        `${hostname()
          .replaceAll(/[^A-Za-z0-9_.-]/g, "-")
          .slice(0, 90)}-${process.pid}`,
    )
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
  secretsFile: z.string().optional().meta({
    description:
      "Secrets of the Worker, as JSON or NAME=VALUE lines. Read again at each start of the Worker.",
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

/** The options of `cellkit-celld`, with the rules that span several. */
export const celldOptions = celldSchema.superRefine((config, context) => {
  const problem = (key: string, message: string) =>
    context.addIssue({ code: "custom", path: [key], message });
  const internalGiven = config.internalListen.port !== 0;
  if (!isLoopback(config.listen.host) && !internalGiven) {
    problem(
      "internalListen",
      "is needed with a --listen that is not loopback: peers and the operator use it",
    );
  }
  if (config.advertise !== undefined && !internalGiven) {
    problem("internalListen", "is needed with --advertise: peers are sent to that very listener");
  }
  if (isUnspecified(config.internalListen.host) && config.advertise === undefined) {
    problem(
      "advertise",
      `is needed with --internal-listen ${config.internalListen.host}: peers cannot dial that address`,
    );
  }
  if (config.advertise !== undefined && isPublicIp(config.advertise.host) && !config.unsafePublicAdvertise) {
    problem(
      "advertise",
      `${config.advertise.host} is a public address, and the internal listener must not be reachable from outside; use a private one, or --unsafe-public-advertise`,
    );
  }
});

/** The checked configuration of a node. */
export type CelldConfig = z.output<typeof celldSchema>;

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

const notHere = (reason: string): OtherVariable => ({ effect: "none", reason });
const workerdDecides = notHere("workerd decides this by itself");

/** Variables of the original celld that this one takes without effect or refuses (spec: README, "Environment"). */
export const otherVariables: Readonly<Record<string, OtherVariable>> = {
  CELLD_OUTPUT_GATE: { effect: "refused", reason: "the output gate cannot be switched off here; unset it" },
  "CELLD_VAR_*": {
    effect: "refused",
    reason: "set vars in the Wrangler configuration, or secrets in --secrets-file",
  },
  CELLD_TTL_MS: notHere("the lease's lifetime is workerd's (20 s)"),
  CELLD_RELEASES: workerdDecides,
  CELLD_ACTIVATIONS: workerdDecides,
  CELLD_EVICTIONS: workerdDecides,
  CELLD_IDLE_EVICT_S: workerdDecides,
  CELLD_MAX_RESIDENT_CELLS: notHere("nothing bounds the resident cells of a node yet"),
  CELLD_MAX_RSS_MB: notHere("nothing sheds load yet; bound the container's memory"),
  CELLD_DURABILITY: notHere("every acknowledged write is in the bucket"),
  CELLD_STORAGE_PROBE: notHere("the store is qualified with `cellkit qualify bucket`, not at each start"),
};
