// The options of a fleet and of a call, and their defaults, filled in once.
import type { BodyInit, Dispatcher, Pool } from "undici";
import { type DrainMarker, type MarkerFn, parseMarker } from "./core/drain-marker.ts";
import type { NodeRules } from "./core/node-state.ts";
import type { Endpoint, EndpointSource } from "./endpoints.ts";
import { ConfigurationError } from "./errors.ts";
import type { NodeView } from "./fleet-node.ts";

/** Chooses among candidates; `undefined` falls back to power of two choices. */
export type SelectFn = (candidates: readonly NodeView[]) => NodeView | undefined;

/** How a {@link Fleet} is set up. */
export interface FleetOptions {
  /** Logical origin, for example `http://app.internal`: what requests name, and the `Host` that every node sees. */
  authority: string | URL;
  endpoints: EndpointSource | ReadonlyArray<string | URL | Endpoint>;
  /** How a drain refusal is recognised. Default `strict`. */
  drainMarker?: "strict" | "body" | `header:${string}` | MarkerFn;
  /** Health probes of nodes that are set aside; false sends none. */
  health?:
    | false
    | {
        /** Default `/__celld/health`. */
        path?: string;
        /** Default 1000. */
        timeoutMs?: number;
        /** Between probes of a node with open sockets. Default 5000. */
        intervalMs?: number;
        /** Longest time set aside without a good probe. Default 60000. */
        boundMs?: number;
      };
  /** Ejection of nodes that fail; false never ejects. */
  outlier?:
    | false
    | {
        /** Connect failures or ambiguous endings in a row that eject. Default 5. */
        consecutive?: number;
        /** First ejection, times the number of ejections. Default 5000. */
        baseMs?: number;
        /** Default 60000. */
        maxMs?: number;
        /** At most this share of the nodes is ejected at once, in percent. Default 50. */
        maxPercent?: number;
      };
  /** Default `p2c`, power of two choices. */
  select?: "p2c" | "round-robin" | SelectFn;
  retry?: RetryOptions;
  /** Passed to each node's undici `Pool`, over the defaults in the README. */
  pool?: Pool.Options;
  /** For tests: the clock in milliseconds (monotonic), chance in [0, 1). */
  internals?: { now?(): number; random?(): number };
}

/** When and how often a call is tried again. */
export interface RetryOptions {
  /** In total. Default 4; 8 when the only endpoint is load-balanced. */
  maxAttempts?: number;
  /** Statuses that an idempotent or keyed call is tried again for. Default 408, 429, 502, 503, 504. */
  retryStatuses?: readonly number[];
  /** Backoff n is random(0, min(maxDelayMs, baseDelayMs x 2^(n-1))). Default 25. */
  baseDelayMs?: number;
  /** Default 1000. */
  maxDelayMs?: number;
  /** A longer `Retry-After` ends the call with the answer as it is. Default 10000. */
  maxRetryAfterMs?: number;
  /** From the call to its response headers; 0 is none. Default 30000. */
  deadlineMs?: number;
  /** For one attempt to its headers, where another would be allowed; 0 is none. Default 10000. */
  perTryTimeoutMs?: number;
  /** Longest wait for a node when none is usable. Default 5000. */
  waitForNodeMs?: number;
  /** Shared by all calls of a fleet; false is no limit. Per call only false counts. */
  budget?:
    | false
    | {
        /** Retries per call started. Default 0.2. */
        ratio?: number;
        /** Retries per second besides. Default 10. */
        minPerSecond?: number;
        /** Default 10000. */
        windowMs?: number;
      };
  /** How much of a one-shot body is kept for another attempt. Default 65536. */
  replayBufferBytes?: number;
  /** The pause after the first bytes of a large upload, so that a refusal is seen; false is none. */
  bodyHeadStart?:
    | false
    | {
        /** Smallest body that gets it. Default 262144. */
        minBytes?: number;
        /** Default 1024. */
        firstChunkBytes?: number;
        /** Default `auto`: three times the node's connect time, between 10 and 50. */
        waitMs?: number | "auto";
      };
  /** A body declared smaller that broke off before its last chunk counts as not sent. Default 0, off. */
  incompleteUploadSafeBelowBytes?: number;
}

/** What one call may say, beside overriding {@link RetryOptions}. */
export interface CallOptions extends Partial<RetryOptions> {
  /** Overrides what the method says about running twice; false also turns off retries of a keyed call. */
  idempotent?: boolean;
  /** Sends an `Idempotency-Key`, the same on every attempt; true makes one. */
  idempotencyKey?: boolean | string;
  /** Makes the body anew for each attempt. */
  replay?: () => BodyInit | Promise<BodyInit>;
  /** Name of a header with the attempt's number, sent from the second attempt on. Default false. */
  attemptHeader?: string | false;
}

/** Options of a request through a fleet. */
export type FleetDispatchOptions = Dispatcher.DispatchOptions & { fleet?: CallOptions };

/** {@link RetryOptions} with every default filled in. */
export interface ResolvedRetry {
  /** Undefined: by the kind of the endpoints. */
  readonly maxAttempts: number | undefined;
  readonly retryStatuses: ReadonlySet<number>;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  readonly maxRetryAfterMs: number;
  readonly deadlineMs: number;
  readonly perTryTimeoutMs: number;
  readonly waitForNodeMs: number;
  readonly budget:
    | false
    | { readonly ratio: number; readonly minPerSecond: number; readonly windowMs: number };
  readonly replayBufferBytes: number;
  readonly bodyHeadStart:
    | false
    | { readonly minBytes: number; readonly firstChunkBytes: number; readonly waitMs: number | "auto" };
  readonly incompleteUploadSafeBelowBytes: number;
}

/** {@link FleetOptions} with every default filled in. */
export interface ResolvedFleet {
  readonly authority: URL;
  readonly endpoints: FleetOptions["endpoints"];
  readonly marker: DrainMarker;
  readonly health: false | { readonly path: string; readonly timeoutMs: number; readonly intervalMs: number };
  readonly rules: NodeRules;
  readonly maxEjectedRatio: number;
  readonly select: "p2c" | "round-robin" | SelectFn;
  readonly retry: ResolvedRetry;
  readonly pool: Pool.Options;
  readonly now: () => number;
  readonly random: () => number;
}

const defaultRetry: ResolvedRetry = {
  maxAttempts: undefined,
  retryStatuses: new Set([408, 429, 502, 503, 504]),
  baseDelayMs: 25,
  maxDelayMs: 1_000,
  maxRetryAfterMs: 10_000,
  deadlineMs: 30_000,
  perTryTimeoutMs: 10_000,
  waitForNodeMs: 5_000,
  budget: { ratio: 0.2, minPerSecond: 10, windowMs: 10_000 },
  replayBufferBytes: 65_536,
  bodyHeadStart: { minBytes: 262_144, firstChunkBytes: 1_024, waitMs: "auto" },
  incompleteUploadSafeBelowBytes: 0,
};

/** Throws for anything but a number of at least `least` (Infinity included). */
function checked(name: string, value: number | undefined, least: number): void {
  if (value !== undefined && !(typeof value === "number" && value >= least)) {
    throw new ConfigurationError(`${name} is ${String(value)}; give a number of at least ${least}`);
  }
}

/**
 * Lays options over what already stands.
 * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG) for a value out of range
 */
export function resolveRetry(options: RetryOptions, base: ResolvedRetry = defaultRetry): ResolvedRetry {
  checked("maxAttempts", options.maxAttempts, 1);
  for (const name of [
    "baseDelayMs",
    "maxDelayMs",
    "maxRetryAfterMs",
    "deadlineMs",
    "perTryTimeoutMs",
    "waitForNodeMs",
    "replayBufferBytes",
    "incompleteUploadSafeBelowBytes",
  ] as const) {
    checked(name, options[name], 0);
  }
  const budget =
    options.budget === undefined ? base.budget : options.budget && { ...defaultBudget, ...options.budget };
  const headStart =
    options.bodyHeadStart === undefined
      ? base.bodyHeadStart
      : options.bodyHeadStart && { ...defaultHeadStart, ...options.bodyHeadStart };
  if (budget) for (const [name, value] of Object.entries(budget)) checked(`budget.${name}`, value, 0);
  if (headStart) {
    checked("bodyHeadStart.minBytes", headStart.minBytes, 0);
    checked("bodyHeadStart.firstChunkBytes", headStart.firstChunkBytes, 1);
    if (headStart.waitMs !== "auto") checked("bodyHeadStart.waitMs", headStart.waitMs, 0);
  }
  return {
    maxAttempts: options.maxAttempts ?? base.maxAttempts,
    retryStatuses: options.retryStatuses === undefined ? base.retryStatuses : new Set(options.retryStatuses),
    baseDelayMs: options.baseDelayMs ?? base.baseDelayMs,
    maxDelayMs: options.maxDelayMs ?? base.maxDelayMs,
    maxRetryAfterMs: options.maxRetryAfterMs ?? base.maxRetryAfterMs,
    deadlineMs: options.deadlineMs ?? base.deadlineMs,
    perTryTimeoutMs: options.perTryTimeoutMs ?? base.perTryTimeoutMs,
    waitForNodeMs: options.waitForNodeMs ?? base.waitForNodeMs,
    budget,
    replayBufferBytes: options.replayBufferBytes ?? base.replayBufferBytes,
    bodyHeadStart: headStart,
    incompleteUploadSafeBelowBytes:
      options.incompleteUploadSafeBelowBytes ?? base.incompleteUploadSafeBelowBytes,
  };
}

const defaultBudget = { ratio: 0.2, minPerSecond: 10, windowMs: 10_000 };
const defaultHeadStart = { minBytes: 262_144, firstChunkBytes: 1_024, waitMs: "auto" as const };

/**
 * Checks the options of a fleet and fills in every default.
 * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG)
 */
export function resolveFleet(options: FleetOptions): ResolvedFleet {
  if (!URL.canParse(String(options.authority))) {
    throw new ConfigurationError(
      `authority ${String(options.authority)} is not an origin like http://app.internal`,
    );
  }
  const authority = new URL(options.authority);
  if (authority.protocol !== "http:" && authority.protocol !== "https:") {
    throw new ConfigurationError(`authority ${authority.href} has to begin with http: or https:`);
  }
  const marker = parseMarker(options.drainMarker ?? "strict");
  if (marker === undefined) {
    throw new ConfigurationError(
      `drainMarker ${String(options.drainMarker)} is none of strict, body, header:NAME=VALUE, or a function`,
    );
  }
  const health = options.health === false ? false : { ...defaultHealth, ...options.health };
  const outlier = options.outlier === false ? false : { ...defaultOutlier, ...options.outlier };
  if (health) {
    checked("health.timeoutMs", health.timeoutMs, 1);
    checked("health.intervalMs", health.intervalMs, 1);
    checked("health.boundMs", health.boundMs, 0);
  }
  if (outlier) {
    checked("outlier.consecutive", outlier.consecutive, 1);
    checked("outlier.baseMs", outlier.baseMs, 0);
    checked("outlier.maxMs", outlier.maxMs, 0);
    checked("outlier.maxPercent", outlier.maxPercent, 0);
  }
  return {
    authority,
    endpoints: options.endpoints,
    marker,
    health,
    rules: { boundMs: health ? health.boundMs : defaultHealth.boundMs, probes: health !== false, outlier },
    maxEjectedRatio: outlier ? outlier.maxPercent / 100 : 0,
    select: options.select ?? "p2c",
    retry: resolveRetry(options.retry ?? {}),
    pool: options.pool ?? {},
    now: options.internals?.now ?? performance.now.bind(performance),
    random: options.internals?.random ?? Math.random,
  };
}

const defaultHealth = { path: "/__celld/health", timeoutMs: 1_000, intervalMs: 5_000, boundMs: 60_000 };
const defaultOutlier = { consecutive: 5, baseMs: 5_000, maxMs: 60_000, maxPercent: 50 };
