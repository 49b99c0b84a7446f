// What a fleet tells on diagnostics_channel. Nothing is built, and nothing costs, while nobody listens.
import { type Channel, channel } from "node:diagnostics_channel";

/** The channels, by what they tell; their names begin with `fleet:`. */
export const events: Readonly<
  Record<
    "callStart" | "callEnd" | "attemptStart" | "attemptEnd" | "retry" | "budgetEmpty" | "node" | "endpoints",
    Channel
  >
> = {
  /** `{ method, path }` */
  callStart: channel("fleet:call:start"),
  /** `{ method, path, status?, error?, attempts }` */
  callEnd: channel("fleet:call:end"),
  /** `{ method, path, n, node }` */
  attemptStart: channel("fleet:attempt:start"),
  /** An {@link Attempt}. */
  attemptEnd: channel("fleet:attempt:end"),
  /** `{ class, delayMs, free, from }` */
  retry: channel("fleet:retry"),
  /** `{ class, node }` */
  budgetEmpty: channel("fleet:budget:empty"),
  /** `{ id, from, to, reason }` */
  node: channel("fleet:node"),
  /** `{ added, removed, stale }`: ids, and whether the source failed and the last set stays. */
  endpoints: channel("fleet:endpoints"),
};
