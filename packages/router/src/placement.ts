// Which dispatcher a new id goes to. A rule is asked for ids that no replica knows, before any lock, and for nothing else.
import type { BackendHealth } from "./core/node-report.ts";
import { walkFromChance, walkFromHash } from "./core/selection.ts";
import { PlacementError } from "./errors.ts";
import { untilAborted } from "./until-aborted.ts";

/** What a placement rule knows. */
export interface PlacementRequest {
  readonly id: string;
  /** The exact body of the submission. */
  readonly body: Uint8Array;
  /** Origins known at this moment, in the order of the list. */
  readonly backends: readonly string[];
  /** Asks a backend for its health. Never rejects; callers that ask at once share an answer. */
  health(origin: string): Promise<BackendHealth>;
  /** Aborted when the rule's time is over (`limits.placementMs`), or the router must stop at once; not when the caller goes away. */
  readonly signal: AbortSignal;
}

/**
 * A placement rule: one of `backends`, or undefined where none would do; then nothing is recorded, and the caller may try again. So it is
 * when the rule fails, or does not answer in time; what it answers after that is of no interest.
 */
export type Placement = (request: PlacementRequest) => Promise<string | undefined>;

/** The first healthy one from where the id's hash points, forward and around: the same on all replicas. The default. */
export const placeByHash: Placement = ({ id, backends, health }) =>
  firstHealthy(walkFromHash(id, backends), health);

/** The first healthy one from a start of chance. */
export const placeByChance: Placement = ({ backends, health }) =>
  firstHealthy(walkFromChance(Math.random(), backends), health);

async function firstHealthy(
  backends: readonly string[],
  health: PlacementRequest["health"],
): Promise<string | undefined> {
  for (const origin of backends) if ((await health(origin)).healthy) return origin;
  return undefined;
}

/**
 * Asks a rule, and waits for it as long as it may take; those of this package end with their last probe, which has a bound of its own.
 * @throws PlacementError (CELLKIT_ROUTER_PLACEMENT) when it has not answered in time; else what it throws, or the signal's reason
 */
export async function choose(
  rule: Placement,
  request: Omit<PlacementRequest, "signal">,
  { placementMs, signal }: { readonly placementMs: number; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const over = new AbortController();
  const stop = () => over.abort(signal.reason);
  const giveUp = () => over.abort(new PlacementError(`gave no answer within ${placementMs} ms`));
  const timer = rule === placeByHash || rule === placeByChance ? undefined : setTimeout(giveUp, placementMs);
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await untilAborted(rule({ ...request, signal: over.signal }), over.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
