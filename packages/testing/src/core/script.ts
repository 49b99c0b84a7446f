// A script: the calls that have to come, in order, and what each of them meets.
import { type CallKind, callKinds, observations } from "./call.ts";
import type { CallMatch, Fault } from "./fault.ts";
import { checkedFault, dispatcherFaults } from "./fault-table.ts";
import { anything, checkMembers, needed, oneOf, text } from "./given.ts";

/** One call that has to come, and what it meets. Without `answer` and `fault` the dispatcher serves it. */
export interface ScriptStep extends CallMatch {
  /** The exact body, or a test of it. */
  readonly body?: string | ((body: string) => boolean);
  /** Answered instead of what the dispatcher would; the call has no effect. */
  readonly answer?: { readonly status: number; readonly body: unknown };
  readonly fault?: Fault;
}

/** The steps of a test. @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) when one could never be followed */
export function checkedSteps(steps: readonly ScriptStep[]): ScriptStep[] {
  return steps.map((step, index) => {
    checkMembers(`script[${index}]`, step, stepRules);
    if (step.answer !== undefined) checkMembers(`script[${index}].answer`, step.answer, answerRules);
    const { call, fault } = step;
    return fault === undefined ? step : { ...step, fault: checkedFault(call, fault, dispatcherFaults) };
  });
}

const isBody = (value: unknown) => typeof value === "string" || typeof value === "function";
const stepRules = {
  call: needed(oneOf(...callKinds)),
  id: text,
  body: { fits: isBody, give: "a string or a function" },
  answer: anything,
  fault: anything,
};
const answerRules = dispatcherFaults.kinds.answer.members;

/** What a script looks at of a call. */
export interface ScriptedCall {
  readonly call: CallKind;
  readonly id: string | undefined;
  readonly body: string;
}

/** What became of a script so far. */
export type ScriptState =
  | { readonly kind: "running"; readonly step: number }
  | { readonly kind: "finished" }
  | { readonly kind: "failed"; readonly step: number; readonly problem: string };

/** What a call is to the script: passed over, the next step, or the deviation that ends it. */
export type Taken =
  | { readonly kind: "beside" }
  | { readonly kind: "step"; readonly step: ScriptStep }
  | { readonly kind: "deviation" };

export class ScriptRun {
  readonly #steps: readonly ScriptStep[];
  readonly #named: ReadonlySet<CallKind>;
  #next = 0;
  #problem: string | undefined;

  constructor(steps: readonly ScriptStep[]) {
    this.#steps = steps;
    this.#named = new Set(steps.map(({ call }) => call));
  }

  /** Holds a call against the step that is next. After a deviation every call is one. */
  take(call: ScriptedCall): Taken {
    if (this.#problem === undefined && observations.includes(call.call) && !this.#named.has(call.call)) {
      return { kind: "beside" };
    }
    const step = this.#steps[this.#next];
    this.#problem ??=
      step === undefined ? `no more calls were expected, but ${shown(call)} came` : deviation(step, call);
    if (this.#problem !== undefined || step === undefined) return { kind: "deviation" };
    this.#next += 1;
    return { kind: "step", step };
  }

  get state(): ScriptState {
    if (this.#problem !== undefined) return { kind: "failed", step: this.#next, problem: this.#problem };
    return this.#next === this.#steps.length ? { kind: "finished" } : { kind: "running", step: this.#next };
  }

  /** What a script that should be at its end did not get; undefined when it is. */
  get problem(): string | undefined {
    const step = this.#steps[this.#next];
    return this.#problem ?? (step === undefined ? undefined : `${expected(step)} never came`);
  }
}

function deviation(step: ScriptStep, call: ScriptedCall): string | undefined {
  const isIt = step.call === call.call && (step.id === undefined || step.id === call.id);
  if (!isIt) return `${expected(step)} was expected, but ${shown(call)} came`;
  if (step.body === undefined) return undefined;
  if (typeof step.body === "function") {
    return step.body(call.body) ? undefined : `${shown(call)} came with a body that its test refuses`;
  }
  if (step.body === call.body) return undefined;
  return `${shown(call)} came with another body, the first difference at character ${firstDifference(step.body, call.body)}`;
}

function expected({ call, id }: ScriptStep): string {
  return id === undefined ? call : `${call} of ${id}`;
}

function shown({ call, id }: ScriptedCall): string {
  return id === undefined ? call : `${call} of ${id}`;
}

function firstDifference(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) if (left[at] !== right[at]) return at;
  return length;
}
