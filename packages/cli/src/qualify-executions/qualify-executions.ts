// Runs the acceptance list on a plane, and makes evidence of it.
import { ExecutionError } from "@cellkit/execution";
import { HookError } from "../errors.ts";
import { executionChecks } from "./checks.ts";
import { beyondReach, type CheckEvidence, type ExecutionsEvidence, verdictOf } from "./evidence.ts";
import type { CheckOutcome } from "./outcome.ts";
import { type PlaneOptions, PlaneUnderTest } from "./plane.ts";

/** What the evidence has beside what happened. */
export type EvidenceFacts = Pick<ExecutionsEvidence, "tool" | "router" | "digests" | "templates">;

/**
 * Runs every check whose needs were given, one after the other. A check that fails does not end the others; a hook that fails fails its check.
 * @param onCheck hears of each check, with what the evidence is until then; it is waited for
 * @throws QualificationInputError (`CELLKIT_CLI_QUALIFICATION_INPUT`); the signal's reason
 */
export async function qualifyExecutions(
  options: PlaneOptions,
  facts: EvidenceFacts,
  onCheck: (check: CheckEvidence, evidence: ExecutionsEvidence) => void | Promise<void>,
): Promise<ExecutionsEvidence> {
  const plane = new PlaneUnderTest(options);
  const startedAt = new Date().toISOString();
  const checks: CheckEvidence[] = [];
  for (const { name, needs, run } of executionChecks) {
    const missing = needs.filter((need) =>
      need === "long-request" ? options.longRequest === undefined : options.hooks[need] === undefined,
    );
    const begunAt = new Date().toISOString();
    const { result, detail }: CheckOutcome =
      missing.length > 0
        ? { result: "not-shown", detail: `needs ${missing.map((need) => `--${need}`).join(", ")}` }
        : await outcomeOf(() => run(plane), options.signal);
    const check = { name, result, detail, startedAt: begunAt, endedAt: new Date().toISOString() };
    checks.push(check);
    await onCheck(check, evidenceOf(plane, { facts, startedAt, checks }));
  }
  return evidenceOf(plane, { facts, startedAt, checks });
}

function evidenceOf(
  { options, nodes, hooks, executions }: PlaneUnderTest,
  { facts, startedAt, checks }: { facts: EvidenceFacts; startedAt: string; checks: readonly CheckEvidence[] },
): ExecutionsEvidence {
  const left = executionChecks.slice(checks.length).map(({ name }) => `${name}: it was not come to`);
  const notShown = checks.flatMap(({ name, result, detail }) =>
    result === "not-shown" ? [`${name}: ${detail}`] : [],
  );
  const tls = facts.router.startsWith("https:")
    ? []
    : ["TLS on the way to the router: the URL is http:, and tokens and work travelled readable"];
  const discovery =
    options.hooks.rotate === undefined || options.capabilityTokenFile !== undefined
      ? []
      : ["the rotation of the discovery token: needs --capability-token-file"];
  return {
    format: "cellkit.dev/qualify-executions-v1",
    verdict: verdictOf(checks, left.length),
    startedAt,
    endedAt: new Date().toISOString(),
    ...facts,
    checks,
    nodes,
    hooks,
    executions,
    notShown: [...notShown, ...left, ...discovery, ...tls, ...beyondReach],
  };
}

async function outcomeOf(run: () => Promise<CheckOutcome>, signal: AbortSignal): Promise<CheckOutcome> {
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    if (!isTold(error)) throw error;
    const { cause } = error;
    const earlier = error instanceof HookError && isTold(cause) ? `${toldOf(cause)}; then ` : "";
    return { result: "failed", detail: `${earlier}${toldOf(error)}` };
  }
}

function isTold(error: unknown): error is ExecutionError | HookError {
  return error instanceof ExecutionError || error instanceof HookError;
}

function toldOf({ code, message }: ExecutionError | HookError): string {
  return `${code}: ${message}`;
}
