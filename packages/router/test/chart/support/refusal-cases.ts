// Every refusal that needs no cluster: values that are good but for one thing, and all that helm says then.
import { userValues, type Values } from "./helm.ts";

export interface RefusalCase {
  rule: string;
  values: Values;
  says: string[];
}

export const celln = (changes: Values): Values => userValues({ celln: changes });
const router = (changes: Values): Values => celln({ router: changes });
const image = (changes: Values): Values => router({ image: changes });
export const external = (changes: Values): Values => ({
  celln: { enabled: true, allowInsecureHttp: true, router: { external: true }, ...changes },
});

const url = "celln.routerUrl: must be http://HOST:PORT or https://HOST:PORT, with nothing after it.";
const digest =
  "celln.router.image.digest: must be sha256: and 64 lowercase hex digits, those of the image that you built and tried.";
const repository =
  "celln.router.image.repository: name the image with cellkit-router as REGISTRY/NAME, without tag and digest. There is no default.";
const backend = (index: number): string =>
  `celln.router.backends[${index}]: must be http://HOST or http://HOST:PORT of one dispatcher, with nothing after it.`;
const submitsAndAccepts = (key: string): string =>
  `${key} and celln.router.backendTokenSecret name the same Secret: what submits work and what dispatchers accept must differ.`;
const looksAndRuns = (key: string, other: string): string =>
  `${key} and ${other} name the same Secret: who may look must not be able to run anything.`;
const empty = {
  client: "celln.tokenSecret is empty: name the Secret with the client token, in the controller's namespace.",
  discovery:
    "celln.capabilityTokenSecret is empty: name the Secret with the discovery token, in the API server's namespace.",
};
const noName = (key: string, kind: string): string =>
  `${key} must be the name of a ${kind}: lowercase letters, digits, - and . in it. A token itself never stands in values.`;

export const refusals: readonly RefusalCase[] = [
  ...[
    ["the legacy installer", { celln: { installer: { enabled: true } } }],
    [
      "the legacy installer beside an external router",
      external({ tokenSecret: "a", capabilityTokenSecret: "b", installer: { enabled: true } }),
    ],
  ].map(([rule, values]) => ({
    rule: rule as string,
    values: values as Values,
    says: [
      "celln.installer.enabled: the legacy installer is not in this chart. It changes files and systemd units of hosts, and neither an uninstall nor a rollback changes them back. Provision the dispatchers yourself and leave it false.",
    ],
  })),
  {
    rule: "tokens and claims that a release would make",
    values: celln({ bootstrap: { enabled: true } }),
    says: [
      "celln.bootstrap.enabled: not in this chart. A template that makes tokens makes others wherever it is rendered without the cluster, and a claim that a release made is deleted with it. Create the Secrets and the claim yourself.",
    ],
  },
  ...["dispatcher", "fleet", "mediation"].map((part) => ({
    rule: `the newer ${part}`,
    values: celln({ [part]: { enabled: true, anything: "else" } }),
    says: [
      `celln.${part}.enabled: not in this chart, which lists its dispatchers by name in celln.router.backends.`,
    ],
  })),
  {
    rule: "a token for parents",
    values: router({ parentTokenSecret: "celln-parents" }),
    says: [
      "celln.router.parentTokenSecret: this router does not route parents, and refuses the flag. Leave it empty.",
    ],
  },

  ...["http://router:8787/prefix", "https://router?a=b", "https://u@router", "https://", "https://a b"].map(
    (routerUrl) => ({ rule: `the router's address ${routerUrl}`, values: celln({ routerUrl }), says: [url] }),
  ),
  {
    rule: "plain HTTP to the router that nobody acknowledged",
    values: celln({ allowInsecureHttp: false }),
    says: [
      "celln.allowInsecureHttp: celln.routerUrl is not https://, so that tokens and work travel in the clear. Set it to true to accept that, on a network that you trust.",
    ],
  },
  {
    rule: "plain HTTP to a router that speaks TLS",
    values: router({ tlsSecret: "celln-router-tls" }),
    says: [
      "celln.routerUrl: with celln.router.tlsSecret the router speaks TLS and nothing else. Begin it with https://.",
    ],
  },
  {
    rule: "plain HTTP to dispatchers that nobody acknowledged",
    values: router({ allowInsecureBackends: false }),
    says: [
      "celln.router.allowInsecureBackends: routers talk to dispatchers without TLS, so that the dispatchers' token travels in the clear. Set it to true to accept that, on a network that you trust.",
    ],
  },

  { rule: "no Secret for the controller", values: celln({ tokenSecret: "" }), says: [empty.client] },
  {
    rule: "no Secret for the API server",
    values: celln({ capabilityTokenSecret: "" }),
    says: [empty.discovery],
  },
  {
    rule: "no client Secret for the router",
    values: router({ clientTokenSecret: "" }),
    says: [
      "celln.router.clientTokenSecret is empty: name the Secret with the client token, in celln-system.",
    ],
  },
  {
    rule: "no backend Secret",
    values: router({ backendTokenSecret: "" }),
    says: [
      "celln.router.backendTokenSecret is empty: name the Secret with the dispatchers' token, in celln-system.",
    ],
  },
  {
    rule: "no discovery Secret for the router",
    values: router({ capabilityTokenSecret: "" }),
    says: [
      "celln.router.capabilityTokenSecret is empty: name the Secret with the discovery token, in celln-system.",
    ],
  },
  ...[
    ["celln.caConfigMap", "ConfigMap", celln({ caConfigMap: "Not A Name" })],
    [
      "celln.router.tlsSecret",
      "Secret",
      celln({ routerUrl: "https://router", router: { tlsSecret: "-tls" } }),
    ],
    ["celln.tokenSecret", "Secret", celln({ tokenSecret: "UPPER" })],
    ["celln.capabilityTokenSecret", "Secret", celln({ capabilityTokenSecret: "a_b" })],
    ["celln.router.clientTokenSecret", "Secret", router({ clientTokenSecret: "a b" })],
    ["celln.router.backendTokenSecret", "Secret", router({ backendTokenSecret: "ends-" })],
    ["celln.router.capabilityTokenSecret", "Secret", router({ capabilityTokenSecret: "a".repeat(254) })],
    ["celln.router.ownershipClaim", "PersistentVolumeClaim", router({ ownershipClaim: "../up" })],
  ].map(([key, kind, values]) => ({
    rule: `what is no name in ${key as string}`,
    values: values as Values,
    says: [noName(key as string, kind as string)],
  })),

  {
    rule: "one Secret for the router's callers and for dispatchers",
    values: router({ clientTokenSecret: "celln-dispatcher-backend" }),
    says: [submitsAndAccepts("celln.router.clientTokenSecret")],
  },
  {
    rule: "one Secret for the controller and for dispatchers",
    values: celln({ tokenSecret: "celln-dispatcher-backend" }),
    says: [submitsAndAccepts("celln.tokenSecret")],
  },
  {
    rule: "one Secret for the API server and for the controller",
    values: celln({ tokenSecret: "celln-discovery" }),
    says: ["celln.capabilityTokenSecret", "celln.router.capabilityTokenSecret"].map((key) =>
      looksAndRuns(key, "celln.tokenSecret"),
    ),
  },
  {
    rule: "one Secret for discovery and for the router's callers",
    values: router({ clientTokenSecret: "celln-discovery" }),
    says: ["celln.capabilityTokenSecret", "celln.router.capabilityTokenSecret"].map((key) =>
      looksAndRuns(key, "celln.router.clientTokenSecret"),
    ),
  },
  {
    rule: "one Secret for discovery and for dispatchers",
    values: router({ capabilityTokenSecret: "celln-dispatcher-backend" }),
    says: [looksAndRuns("celln.router.capabilityTokenSecret", "celln.router.backendTokenSecret")],
  },

  {
    rule: "an image without a digest or a tag",
    values: image({ digest: "" }),
    says: [
      "celln.router.image.digest is empty: pin the router's image by its digest (or, weaker, name a tag).",
    ],
  },
  ...[
    "sha256:REPLACE_WITH_ACTUAL_64_HEX_DIGEST",
    `sha256:${"A".repeat(64)}`,
    `sha256:${"a".repeat(63)}`,
    "a".repeat(64),
    `sha512:${"a".repeat(64)}`,
    `sha256:${"a".repeat(64)}\n`,
  ].map((value) => ({
    rule: `the digest ${JSON.stringify(value)}`,
    values: image({ digest: value }),
    says: [digest],
  })),
  ...[
    "",
    "YOUR_REGISTRY/celln-router",
    "registry.example/celln-router:v1",
    "registry.example/x@sha256:aa",
  ].map((value) => ({
    rule: `the image's name ${JSON.stringify(value)}`,
    values: image({ repository: value }),
    says: [repository],
  })),
  {
    rule: "what is no tag",
    values: image({ digest: "", tag: "v1 latest" }),
    says: ["celln.router.image.tag: is no tag of an image."],
  },

  {
    rule: "no dispatchers",
    values: router({ backends: [] }),
    says: [
      "celln.router.backends is empty: list every dispatcher as http://HOST:PORT, in the same order for all routers.",
    ],
  },
  ...[
    "https://a:8787",
    "http://a:8787/",
    "http://a/v1",
    "http://u@a",
    "http://a?b",
    "http://a#b",
    "http://a b",
    "http://",
    "a:8787",
    "http://a:99999",
    "http://a:0",
    "http://a,http://b",
  ].map((value) => ({
    rule: `the dispatcher ${value}`,
    values: router({ backends: ["http://a:1", value] }),
    says: [backend(1)],
  })),
  {
    rule: "callers' pods in what cannot be a namespace",
    values: celln({ controlPlaneNamespace: "Foo Bar" }),
    says: [
      "celln.controlPlaneNamespace: must be the name of a namespace, lowercase letters, digits and - in it: the policy lets its pods in, and with another one nobody.",
    ],
  },
  ...[
    ["http://a:8787", "http://b:8787", "http://a:8787"],
    ["http://a", "http://b", "http://A:80"],
  ].map((backends) => ({
    rule: `a dispatcher twice, as ${backends[0]} and ${backends[2]}`,
    values: router({ backends }),
    says: [
      "celln.router.backends: the same dispatcher stands there twice. Its address is the name under which it owns work; list it once.",
    ],
  })),
  {
    rule: "no claim for the ledger",
    values: router({ ownershipClaim: "" }),
    says: [
      "celln.router.ownershipClaim is empty: name the PersistentVolumeClaim for the ledger, in celln-system: one that exists, that all replicas share and that was qualified.",
    ],
  },

  { rule: "an external router without Secrets", values: external({}), says: [empty.client, empty.discovery] },
  {
    rule: "an external router with one Secret for both clients",
    values: external({ tokenSecret: "one", capabilityTokenSecret: "one" }),
    says: [looksAndRuns("celln.capabilityTokenSecret", "celln.tokenSecret")],
  },
  {
    rule: "an external router on plain HTTP that nobody acknowledged",
    values: external({ tokenSecret: "a", capabilityTokenSecret: "b", allowInsecureHttp: false }),
    says: [
      "celln.allowInsecureHttp: celln.routerUrl is not https://, so that tokens and work travel in the clear. Set it to true to accept that, on a network that you trust.",
    ],
  },
];
