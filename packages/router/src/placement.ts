// Which dispatcher a new id goes to. A rule is asked for ids that no replica knows, before any lock, and for nothing else.
import type { BackendHealth } from "./core/node-report.ts";
import { walkFromChance, walkFromHash } from "./core/selection.ts";

/** What a placement rule knows. */
export interface PlacementRequest {
  readonly id: string;
  /** The exact body of the submission. */
  readonly body: Uint8Array;
  /** Origins known at this moment, in the order of the list. */
  readonly backends: readonly string[];
  /** Asks a backend for its health. Never rejects; callers that ask at once share an answer. */
  health(origin: string): Promise<BackendHealth>;
}

/** A placement rule: one of `backends`, or undefined where none would do; then nothing is recorded, and the caller may try again. */
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
