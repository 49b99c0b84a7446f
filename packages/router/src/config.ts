// What a router is told: flags, environment, defaults. One schema; `--help` and the README's table come from it. It is long
// because it is a table: every option stands here once, and nowhere else.
import { isIP } from "node:net";
import { hostname } from "node:os";
import { addressOption, logOptions, storeOptions } from "@cellkit/daemon";
import { z } from "zod";
import {
  discoveryName,
  ledgerUrl,
  originList,
  prefix,
  refusedFlag,
  tokenFile,
  tokenSection,
} from "./option-kinds.ts";

const sections = {
  backends: "Dispatchers",
  tokens: tokenSection,
  ledger: "Ledger",
  listeners: "Listeners",
  replica: "This replica",
} as const;

/** Each option by itself. */
const routerSchema = z.strictObject({
  backends: originList()
    .optional()
    .meta({
      description:
        "All dispatchers, with commas: http://HOST[:PORT], each the address of exactly one. Every replica is given the same list in the same order.",
      env: `${prefix}BACKENDS`,
      placeholder: "URL,URL",
      section: sections.backends,
      emptyIsUnset: true,
    }),
  backendsSrv: discoveryName()
    .optional()
    .meta({
      description:
        "Dispatchers are also those that this DNS name has addresses (A, AAAA) of; port 8787 where none is given. Looked up when needed, every 5 s at most; a failed lookup keeps the last answer.",
      env: `${prefix}BACKENDS_SRV`,
      placeholder: "NAME[:PORT]",
      section: sections.backends,
      emptyIsUnset: true,
    }),
  dnsServer: addressOption(({ host, port }) =>
    isIP(host) === 0 || port === 0 ? "must be IP:PORT, an IPv6 address in brackets" : undefined,
  )
    .optional()
    .meta({
      description: "The DNS server to ask for --backends-srv, and no other; its names are taken as they are.",
      env: `${prefix}DNS_SERVER`,
      placeholder: "IP:PORT",
      defaultText: "the system's way to look up names",
      section: sections.backends,
      emptyIsUnset: true,
    }),
  mode: z
    .enum(["round-robin", "random"])
    .default("round-robin")
    .meta({
      description:
        "Where the search for a healthy owner of a new id starts: at a hash of the id, or anywhere. Known ids stay where they are.",
      env: `${prefix}MODE`,
      section: sections.backends,
      emptyIsUnset: true,
    }),
  keepBackends: z
    .boolean()
    .default(false)
    .meta({
      description:
        "Keep connections to dispatchers for later calls, but never for submissions. Only for dispatchers that answer with Content-Length. Without it, as with the original, each call has a connection of its own.",
      env: `${prefix}KEEP_BACKENDS`,
      section: sections.backends,
    }),

  clientTokenFile: tokenFile(
    "The token of callers. Read for each request, so a replaced file counts at once.",
    "CLIENT_TOKEN_FILE",
  ),
  nextClientTokenFile: tokenFile(
    "A second token that callers may use, for the time of a rotation. A file that is absent is no second token.",
    "NEXT_CLIENT_TOKEN_FILE",
  ).optional(),
  tokenFile: tokenFile(
    "The token that the router shows to dispatchers. Callers who show it are refused.",
    "TOKEN_FILE",
  ),
  capabilityTokenFile: tokenFile(
    "The token that allows GET /v1/capabilities and nothing else.",
    "CAPABILITY_TOKEN_FILE",
  ).optional(),
  nextCapabilityTokenFile: tokenFile(
    "A second one of these, for the time of a rotation. A file that is absent is no second token.",
    "NEXT_CAPABILITY_TOKEN_FILE",
  ).optional(),
  isolateDiscovery: z
    .boolean()
    .default(false)
    .meta({
      description:
        "A capability token that cannot be used stops discovery alone. Without it, as with the original, every request gets 503.",
      env: `${prefix}ISOLATE_DISCOVERY`,
      section: sections.tokens,
    }),
  parentTokenFile: refusedFlag(
    "parents are not routed yet, so leave it out; /v1/parents answers 503",
    "PARENT_TOKEN_FILE",
  ),
  scopedTokenFile: refusedFlag(
    "scoped operations are not served yet, so leave it out; /v1/scoped answers 404",
    "SCOPED_TOKEN_FILE",
  ),

  ledger: ledgerUrl()
    .optional()
    .meta({
      description:
        "Where the owners of ids are kept: a directory, s3://BUCKET/PREFIX or postgres://HOST/DATABASE. One for all replicas; this or --ownership-dir.",
      env: `${prefix}LEDGER`,
      placeholder: "DIR|URL",
      section: sections.ledger,
      emptyIsUnset: true,
    }),
  ownershipDir: z
    .string()
    .min(1)
    .optional()
    .meta({
      description: "The same as --ledger DIR, by the original's name.",
      env: `${prefix}OWNERSHIP_DIR`,
      placeholder: "DIR",
      section: sections.ledger,
      emptyIsUnset: true,
    }),
  requireExistingLedger: z
    .boolean()
    .default(false)
    .meta({
      description:
        "Refuse to start where no ledger was created before, so that a missing mount never becomes an empty ledger. Set it once the first replica has started.",
      env: `${prefix}REQUIRE_EXISTING_LEDGER`,
      section: sections.ledger,
    }),
  ledgerCapacity: z
    .number()
    .int()
    .min(1)
    .max(100_000_000)
    .optional()
    .meta({
      description: "How many ids it may hold; not for a bucket. Past it, new ids get 503.",
      env: `${prefix}LEDGER_CAPACITY`,
      placeholder: "COUNT",
      defaultText: "100000 in a directory, no limit elsewhere",
      section: sections.ledger,
      emptyIsUnset: true,
    }),
  ledgerLockMs: z
    .number()
    .int()
    .min(0)
    .max(60_000)
    .default(2_000)
    .meta({
      description: "How long a submission waits for a directory's lock before it gets 503.",
      env: `${prefix}LEDGER_LOCK_MS`,
      section: sections.ledger,
    }),
  trustDirectoryTimes: z
    .boolean()
    .default(false)
    .meta({
      description: "For a directory on a network: set it where `cellkit qualify ledger` says so.",
      env: `${prefix}TRUST_DIRECTORY_TIMES`,
      section: sections.ledger,
    }),
  ...storeOptions(sections.ledger),

  listen: addressOption()
    .prefault("0.0.0.0:8787")
    .meta({
      description: "Where callers are served.",
      env: `${prefix}LISTEN`,
      placeholder: "HOST:PORT",
      section: sections.listeners,
      emptyIsUnset: true,
    }),
  internalListen: addressOption()
    .prefault("127.0.0.1:0")
    .meta({
      description: "Where /health and /metrics are served, in plain HTTP. Port 0 takes a free one.",
      env: `${prefix}INTERNAL_LISTEN`,
      placeholder: "HOST:PORT",
      section: sections.listeners,
      emptyIsUnset: true,
    }),
  maxConnections: z
    .number()
    .int()
    .min(1)
    .max(65_536)
    .default(16_384)
    .meta({
      description: "Connections of callers at a time. Further ones are closed.",
      env: `${prefix}MAX_CONNECTIONS`,
      section: sections.listeners,
    }),
  tlsCert: z
    .string()
    .min(1)
    .optional()
    .meta({
      description: "Serve callers over TLS, with this certificate, PEM. The original has no TLS.",
      env: `${prefix}TLS_CERT`,
      placeholder: "FILE",
      section: sections.listeners,
      emptyIsUnset: true,
    }),
  tlsKey: z
    .string()
    .min(1)
    .optional()
    .meta({
      description: "Its private key, PEM. Both are read again when they change.",
      env: `${prefix}TLS_KEY`,
      placeholder: "FILE",
      section: sections.listeners,
      emptyIsUnset: true,
    }),

  replica: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,48}$/, "must be 1 to 48 of A-Z a-z 0-9 _ . -")
    .default(replicaName)
    .meta({
      description: "This replica's name among those that share the ledger, in logs and in its fingerprint.",
      env: `${prefix}REPLICA`,
      defaultText: "host name and process id",
      section: sections.replica,
      emptyIsUnset: true,
    }),
  fingerprint: z
    .boolean()
    .default(true)
    .meta({
      description:
        "Leave a fingerprint of the list and the tokens beside the ledger, and alarm when another replica's is different.",
      env: `${prefix}FINGERPRINT`,
      section: sections.replica,
    }),
  shutdownDrainMs: z
    .number()
    .int()
    .min(0)
    .max(3_600_000)
    .default(25_000)
    .meta({
      description: "How long requests that run may take once the router is told to stop.",
      env: `${prefix}SHUTDOWN_DRAIN_MS`,
      section: sections.replica,
    }),
  ...logOptions(prefix),
});

/** The checked configuration of a router. */
export type RouterConfig = z.output<typeof routerSchema>;

/** The options of `cellkit-router`. */
export const routerOptions = routerSchema
  .refine(({ backends, backendsSrv }) => backends !== undefined || backendsSrv !== undefined, {
    path: ["backends"],
    when: whenGood("backends", "backendsSrv"),
    error: "no dispatcher is named: give --backends, --backends-srv, or both",
  })
  .refine(({ dnsServer, backendsSrv }) => dnsServer === undefined || backendsSrv !== undefined, {
    path: ["dnsServer"],
    when: whenGood("backendsSrv", "dnsServer"),
    error: "is of use with --backends-srv only",
  })
  .refine(({ ledger, ownershipDir }) => (ledger === undefined) !== (ownershipDir === undefined), {
    path: ["ownershipDir"],
    when: whenGood("ledger", "ownershipDir"),
    error: "exactly one is needed: --ledger, or --ownership-dir for a directory",
  })
  .refine(({ ledgerCapacity, ledger = "" }) => ledgerCapacity === undefined || !/^(s3|gs|az):/.test(ledger), {
    path: ["ledgerCapacity"],
    when: whenGood("ledger", "ledgerCapacity"),
    error: "a bucket cannot keep a capacity while several replicas write: leave it out",
  })
  .refine(({ tlsCert, tlsKey }) => tlsCert === undefined || tlsKey !== undefined, {
    path: ["tlsCert"],
    when: whenGood("tlsCert", "tlsKey"),
    error: "needs its private key: give --tls-key as well",
  })
  .refine(({ tlsCert, tlsKey }) => tlsKey === undefined || tlsCert !== undefined, {
    path: ["tlsKey"],
    when: whenGood("tlsCert", "tlsKey"),
    error: "needs its certificate: give --tls-cert as well",
  })
  .refine(({ listen, internalListen }) => !isSamePlace(listen, internalListen), {
    path: ["internalListen"],
    when: whenGood("listen", "internalListen"),
    error: "is where --listen is too: give them different ports",
  })
  .refine(
    ({ nextCapabilityTokenFile, capabilityTokenFile }) =>
      nextCapabilityTokenFile === undefined || capabilityTokenFile !== undefined,
    {
      path: ["nextCapabilityTokenFile"],
      when: whenGood("nextCapabilityTokenFile", "capabilityTokenFile"),
      error: "is a second token: give --capability-token-file as well",
    },
  );

/** Rules between options are looked at once the options by themselves are good, whatever else is wrong. */
function whenGood(...keys: readonly (keyof RouterConfig)[]) {
  return ({ issues }: { issues: readonly { path?: PropertyKey[] | undefined }[] }) =>
    !issues.some(({ path }) => keys.some((key) => key === path?.[0]));
}

/** Whether two listeners would want one port of one address. What a name resolves to is not looked up. */
function isSamePlace(one: RouterConfig["listen"], other: RouterConfig["listen"]): boolean {
  if (one.port === 0 || one.port !== other.port) return false;
  const hosts = [one.host, other.host];
  if (one.host === other.host || hosts.includes("::")) return true;
  return hosts.includes("0.0.0.0") && hosts.every((host) => isIP(host) === 4);
}

function replicaName(): string {
  const host = hostname()
    .replaceAll(/[^A-Za-z0-9_.-]/g, "-")
    .slice(-38);
  return `${host}-${process.pid}`;
}
