// From what a probe saw to one of ten states. Eligibility is recomputed, never taken from the answer. Every way to fail has its
// own state, so that a problem on the way is never told as "not installed". Reasons hold nothing of the answer.
import { z } from "zod";
import { parseJson } from "./json.ts";
import { capabilitiesVersion, isCompatible, isEligible, maxNodes } from "./node-report.ts";

/** The states in which nothing can be placed, or nothing is known. */
export type UnavailableState =
  | "disabled"
  | "transport_invalid"
  | "credential_invalid"
  | "unreachable"
  | "not_installed"
  | "not_approved"
  | "incompatible"
  | "no_capacity"
  | "unknown";

/** Something is in the way; `reason` says what, for people. */
export interface UnavailableVerdict {
  readonly state: UnavailableState;
  readonly available: false;
  readonly reason: string;
  /**
   * What lies under it, where something was found: a code of the system or of TLS (`ECONNREFUSED`, `ENOTFOUND`,
   * `SELF_SIGNED_CERT_IN_CHAIN`, `ENOENT`), `CELLKIT_EXECUTION_CA_FILE`, `CELLKIT_EXECUTION_CLIENT_CERTIFICATE`,
   * `CELLKIT_EXECUTION_CLIENT_REFUSED`, or `URL_HAS_ROUTE`: the URL ends with a route itself.
   */
  readonly cause?: string;
}

/** At least one node could take work when it was asked. Preflight only: nothing is reserved, and nothing else was checked. */
export interface ReadyVerdict {
  readonly state: "ready";
  readonly available: true;
  readonly reason: string;
  /** How many nodes are eligible. */
  readonly eligibleNodes: number;
  /** Whether the router forwards parents; false when an older router does not say. */
  readonly parentRouting: boolean;
}

/** Whether a run could be placed, as far as a probe can tell. */
export type CapabilityVerdict = ReadyVerdict | UnavailableVerdict;

/** What a probe saw at the router. */
export type ProbeObservation =
  | { readonly kind: "failed"; readonly cause?: string | undefined }
  | { readonly kind: "answer"; readonly status: number; readonly body: Uint8Array }
  | { readonly kind: "body-unusable"; readonly status: number; readonly cause?: string | undefined };

const httpHint = "set CELLN_ALLOW_INSECURE_HTTP=true only for operator-approved plaintext lab endpoints";

const ready =
  "One-shot node preflight eligible only; selected Harness, approved tools, model grants and warm artifacts still require validation";

const reasons = {
  disabled: "Celln one-shot router is disabled (CELLN_ENABLED is not true)",
  urlInvalid: "Celln one-shot capability URL is invalid",
  plaintext: `Celln requires HTTPS or explicit plaintext acknowledgement (${httpHint})`,
  credentialUnavailable: "Celln read-only credential unavailable",
  credentialInvalid: "Celln read-only credential invalid",
  probeFailed: "Celln authenticated capability probe failed (router unreachable or TLS/configuration error)",
  notFound: "Celln one-shot capabilities endpoint was not found on the configured router",
  notApproved: "Celln authenticated capability probe refused (credential not approved for discovery)",
  refused: "Celln authenticated capability probe refused or unavailable",
  bodyUnusable: "Celln capability response invalid or oversized",
  contract: "Celln capability contract is incompatible",
  inconsistent: "Celln capability eligibility is inconsistent",
  noCapacity: "Celln has no authenticated compatible node with available KVM capacity",
  notConfirmed: "not confirmed",
};

function unavailable(state: UnavailableState, reason: keyof typeof reasons): UnavailableVerdict {
  return { state, available: false, reason: reasons[reason] };
}

/** The verdict with the code of what lies under it, if there is one. */
export function withCause<V extends CapabilityVerdict>(verdict: V, cause: string | undefined): V {
  return cause === undefined || verdict.available ? verdict : { ...verdict, cause };
}

/** What can be said without asking the router. */
export const withoutProbe = {
  disabled: unavailable("disabled", "disabled"),
  urlInvalid: unavailable("transport_invalid", "urlInvalid"),
  plaintext: unavailable("transport_invalid", "plaintext"),
  credentialUnavailable: unavailable("credential_invalid", "credentialUnavailable"),
  credentialInvalid: unavailable("credential_invalid", "credentialInvalid"),
};

/** What is to be said before the first probe has ended. */
export const unknownCapability: UnavailableVerdict = unavailable("unknown", "notConfirmed");

const flag = z.boolean().nullish();
const count = z.union([z.int(), z.bigint()]).nullish();
const text = z.string().nullish();
const texts = z.array(z.string()).nullish();

const figures = z.object({
  kvm: flag,
  cpu_virtualization: flag,
  guest_kernel: flag,
  mote_store: flag,
  tool_store: flag,
  live_cells: count,
  max_cells: count,
  memory_bytes: count,
});

const report = z.object({
  apiVersion: text,
  preflightOnly: flag,
  artifactReadiness: text,
  requestVersions: texts,
  node: figures.nullish(),
});

const answer = z.object({
  apiVersion: z.literal(capabilitiesVersion),
  preflightOnly: z.literal(true),
  artifactReadiness: z.literal("not_checked"),
  eligibleNodes: count,
  parentRouting: flag,
  nodes: z
    .array(z.object({ preflightEligible: flag, report: report.nullish() }))
    .max(maxNodes)
    .nullish(),
});

/** The state that a probe's end means (apiserver, section 3). */
export function capabilityVerdict(seen: ProbeObservation): CapabilityVerdict {
  if (seen.kind === "failed") return withCause(unavailable("unreachable", "probeFailed"), seen.cause);
  if (seen.status === 404) return unavailable("not_installed", "notFound");
  if (seen.status === 401 || seen.status === 403) return unavailable("not_approved", "notApproved");
  if (seen.status !== 200) return unavailable("unreachable", "refused");
  if (seen.kind === "body-unusable")
    return withCause(unavailable("incompatible", "bodyUnusable"), seen.cause);
  return verdictOfBody(seen.body);
}

function verdictOfBody(body: Uint8Array): CapabilityVerdict {
  const parsed = answer.safeParse(jsonOrUndefined(body));
  if (!parsed.success) return unavailable("incompatible", "contract");
  const { nodes, eligibleNodes, parentRouting } = parsed.data;
  const claimed = (nodes ?? []).filter((node) => node.preflightEligible === true);
  const honest =
    claimed.every((node) => isEligibleReport(node.report)) &&
    BigInt(eligibleNodes ?? 0) === BigInt(claimed.length);
  if (!honest) return unavailable("incompatible", "inconsistent");
  if (claimed.length === 0) return unavailable("no_capacity", "noCapacity");
  return {
    state: "ready",
    available: true,
    reason: ready,
    eligibleNodes: claimed.length,
    parentRouting: parentRouting === true,
  };
}

function jsonOrUndefined(body: Uint8Array): unknown {
  try {
    return parseJson(body);
  } catch {
    return undefined;
  }
}

function isEligibleReport(found: z.output<typeof report> | null | undefined): boolean {
  const node = found?.node;
  if (found == null || node == null) return false;
  const { live_cells: live, max_cells: max, memory_bytes: memory } = node;
  if (live == null || max == null || memory == null || live < 0 || max < 0) return false;
  const compatible = isCompatible({
    apiVersion: found.apiVersion ?? "",
    preflightOnly: found.preflightOnly === true,
    requestVersions: found.requestVersions ?? [],
    artifactReadiness: found.artifactReadiness ?? "",
  });
  return (
    compatible &&
    isEligible({
      kvm: node.kvm === true,
      cpu_virtualization: node.cpu_virtualization === true,
      guest_kernel: node.guest_kernel === true,
      mote_store: node.mote_store === true,
      tool_store: node.tool_store === true,
      live_cells: Number(live),
      max_cells: Number(max),
      memory_bytes: BigInt(memory),
    })
  );
}
