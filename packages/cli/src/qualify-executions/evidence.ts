// What a qualification of a plane leaves behind: what was shown, by which executions, at which times, and what was not.
import type { TerminalPhase } from "@cellkit/execution";

/** `not-shown`: it was not tried, or what happened shows nothing; the detail says why. */
export type ShownResult = "passed" | "failed" | "not-shown";

/** One execution that a check made. */
export interface ExecutionEvidence {
  readonly id: string;
  readonly check: string;
  /** SHA-256 over the exact bytes that were submitted. */
  readonly requestSha256: string;
  readonly submittedAt: string;
  /** The dispatchers that were found to have it, by origin. */
  holders: readonly string[];
  phase?: TerminalPhase | undefined;
  /** As the receipt says. */
  node?: string | undefined;
  outputHash?: string | undefined;
  startedAt?: string | undefined;
  completedAt?: string | undefined;
}

/** A node as it reported itself. */
export interface NodeEvidence {
  readonly origin: string;
  readonly at: string;
  readonly names: readonly string[];
  readonly binaryVersion: string | undefined;
  readonly healthy: boolean;
}

/** One check. */
export interface CheckEvidence {
  readonly name: string;
  readonly result: ShownResult;
  readonly detail: string;
  readonly startedAt: string;
  readonly endedAt: string;
}

/** A command of the operator's that was run. */
export interface HookEvidence {
  readonly hook: string;
  /** As it was given to the shell. */
  readonly command?: string | undefined;
  /** How it ended: `code 0`, `code 7`, a signal's name. */
  readonly end: string;
  readonly startedAt: string;
  readonly endedAt: string;
}

/** The whole file. */
export interface ExecutionsEvidence {
  readonly format: "cellkit.dev/qualify-executions-v1";
  /** `shown`: every check passed. `incomplete`: none failed, and not all were shown, or come to. */
  readonly verdict: "shown" | "failed" | "incomplete";
  readonly startedAt: string;
  readonly endedAt: string;
  readonly tool: { readonly cellkit: string; readonly node: string };
  readonly router: string;
  /** What the operator says of images and programs; nobody checked it. */
  readonly digests: Readonly<Record<string, string>>;
  /** SHA-256 of the templates of requests. */
  readonly templates: Readonly<Record<string, string>>;
  readonly checks: readonly CheckEvidence[];
  readonly nodes: readonly NodeEvidence[];
  readonly hooks: readonly HookEvidence[];
  readonly executions: readonly ExecutionEvidence[];
  /** What no run of this command shows, and what this one did not. */
  readonly notShown: readonly string[];
}

/** What this command cannot see, whatever passes. */
export const beyondReach: readonly string[] = [
  "the real controller and the deletion of its objects: this command submits by itself, as a controller would",
  "that a node ran an execution once: dispatchers were asked by id, and what a node did inside is its own to show",
  "the isolation by KVM, signed artifacts and model grants: taken from the nodes' reports, or not looked at",
  "which version the routers are: dispatchers tell theirs, a router does not",
  "the installation of the plane, and what its commands did beside what is seen here",
  "the ledger's storage: `cellkit qualify ledger` tries it",
  "that the digests which the operator gave are those of what runs",
];

/** The verdict over checks. @param leftCount those that were not come to */
export function verdictOf(checks: readonly CheckEvidence[], leftCount = 0): ExecutionsEvidence["verdict"] {
  if (checks.some(({ result }) => result === "failed")) return "failed";
  return leftCount === 0 && checks.every(({ result }) => result === "passed") ? "shown" : "incomplete";
}
