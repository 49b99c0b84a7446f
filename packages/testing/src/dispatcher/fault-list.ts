import type { CallKind } from "../core/call.ts";
import type { CallMatch, Fault } from "../core/fault.ts";
import { checkMembers, isCount } from "../core/given.ts";

/** How often a fault strikes. */
export interface FaultOptions {
  /** @default 1 */
  readonly times?: number;
}

/** Faults that wait for their calls; the oldest that fits strikes. */
export class FaultList<F = Fault> {
  readonly #waiting: { match: CallMatch; fault: F; times: number }[] = [];

  /** @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) */
  add(match: CallKind | CallMatch, fault: F, options: FaultOptions = {}): void {
    checkMembers("options", options, { times: { fits: isTimes, give: "an integer from 1, or Infinity" } });
    const { times = 1 } = options;
    this.#waiting.push({ match: typeof match === "string" ? { call: match } : match, fault, times });
  }

  clear(): void {
    this.#waiting.length = 0;
  }

  take(call: { readonly call: CallKind; readonly id: string | undefined }): F | undefined {
    const at = this.#waiting.findIndex(
      ({ match }) => match.call === call.call && (match.id === undefined || match.id === call.id),
    );
    const found = this.#waiting[at];
    if (found === undefined) return undefined;
    found.times -= 1;
    if (found.times <= 0) this.#waiting.splice(at, 1);
    return found.fault;
  }
}

function isTimes(value: unknown): boolean {
  return value === Number.POSITIVE_INFINITY || (isCount(value) && value > 0);
}
