// Which faults there are, what each needs to be told, and which calls it can strike.
import { TestingOptionError } from "../errors.ts";
import { type CallKind, callKinds } from "./call.ts";
import { aboutExecutions, type CallMatch, type Fault, refusals } from "./fault.ts";
import {
  anything,
  checkMembers,
  count,
  type MemberRules,
  milliseconds,
  needed,
  oneOf,
  shown,
  text,
} from "./given.ts";

/** A kind of fault. */
interface FaultRule {
  /** All but `kind`. */
  readonly members: MemberRules;
  /** The calls for which it makes sense. @default all */
  readonly calls?: readonly CallKind[];
}

/** The faults that somebody can be given. */
export interface FaultTable<Kind extends string> {
  /** The calls that can have a fault. */
  readonly served: readonly CallKind[];
  readonly kinds: Readonly<Record<Kind, FaultRule>>;
}

const isPromise = (value: unknown) =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";

/** Faults that dispatchers and routers have in common. */
export const commonFaults = {
  "black-hole": { members: {} },
  late: { members: { delayMs: needed(milliseconds) } },
  held: { members: { until: needed({ fits: isPromise, give: "a promise" }) } },
  reset: { members: { when: needed(oneOf("before-accept", "after-accept")) } },
  "other-id": { members: { id: text }, calls: aboutExecutions },
  "at-capacity": { members: {}, calls: refusals["at-capacity"].calls },
  answer: { members: { status: needed(status()), body: needed(anything) } },
} as const satisfies Readonly<Record<string, FaultRule>>;

export const dispatcherFaults: FaultTable<Fault["kind"]> = {
  served: callKinds,
  kinds: {
    ...commonFaults,
    swallow: { members: {} },
    die: { members: { when: needed(oneOf("before-accept", "after-accept", "after-answer")) } },
    "wrong-length": {
      members: { differenceBytes: needed({ fits: Number.isSafeInteger, give: "an integer" }) },
    },
    cut: { members: { afterBytes: needed(count) } },
    garbage: { members: { bytes: { fits: isBytes, give: "a string or bytes" } } },
    "invalid-request": { members: {}, calls: refusals["invalid-request"].calls },
    "journal-unavailable": { members: {}, calls: refusals["journal-unavailable"].calls },
    "worker-unavailable": { members: {}, calls: refusals["worker-unavailable"].calls },
    "no-audit": { members: {}, calls: refusals["no-audit"].calls },
    "template-gone": { members: {}, calls: refusals["template-gone"].calls },
  },
};

/** Those that a dispatcher in another process can be told. */
export const processFaults: FaultTable<Exclude<Fault["kind"], "held">> = (() => {
  const { held: _, ...kinds } = dispatcherFaults.kinds;
  return { served: callKinds, kinds };
})();

/**
 * A fault that was meant for calls, if there is such a one, and it can strike them.
 *
 * @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`)
 */
export function checkedFault<F extends { readonly kind: string }>(
  match: CallKind | CallMatch,
  fault: F,
  { served, kinds }: FaultTable<F["kind"]>,
): F {
  const { call } = checkedMatch(match, served);
  // A test need not be typed.
  const given: unknown = fault;
  const kind = typeof given === "object" && given !== null && "kind" in given ? given.kind : undefined;
  const rule = Object.entries<FaultRule>(kinds).find(([name]) => name === kind)?.[1];
  if (rule === undefined) {
    throw new TestingOptionError("fault.kind", `is ${shown(kind)}; give ${Object.keys(kinds).join(", ")}`);
  }
  const { members, calls = served } = rule;
  checkMembers("fault", fault, { kind: anything, ...members });
  if (!calls.includes(call)) {
    throw new TestingOptionError("fault", `${fault.kind} is of ${calls.join(", ")}, and not of ${call}`);
  }
  return "until" in fault ? { ...fault, until: Promise.resolve(fault.until).catch(() => undefined) } : fault;
}

/** Which calls are meant, if there are such calls. @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`) */
export function checkedMatch(
  match: CallKind | CallMatch,
  served: readonly CallKind[] = callKinds,
): CallMatch {
  const given = typeof match === "string" ? { call: match } : match;
  checkMembers("match", given, { call: needed(oneOf(...served)), id: text });
  return given;
}

function status() {
  const fits = (value: unknown) => Number.isInteger(value) && Number(value) >= 100 && Number(value) <= 999;
  return { fits, give: "100 to 999" };
}

function isBytes(value: unknown): boolean {
  return typeof value === "string" || value instanceof Uint8Array;
}
