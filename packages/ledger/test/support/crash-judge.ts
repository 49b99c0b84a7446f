/**
 * What a ledger may look like after a crash. Every id has a set of states that it can be in; each operation narrows it (if it was
 * answered) or widens it (if nobody knows whether it happened). An empty set is a broken promise.
 */
import type { CrashAnswer, CrashOperation } from "./crash-child.ts";

/** What one id's record says; undefined if there is none. */
type IdState = { owner: string; bodyHash: string; marked: boolean } | undefined;

export interface JudgedOperation {
  operation: CrashOperation;
  /** Undefined: begun, and never answered. */
  answer: CrashAnswer | undefined;
  /** Whether records that were there before are old by the clock of this operation. */
  aged: boolean;
}

/** One world: the record, and what was begun, never answered and may still arrive at the store. */
interface World {
  state: IdState;
  pending: readonly JudgedOperation[];
}

/** All states that an id can be in. */
export class PossibleStates {
  readonly id: string;
  readonly #hash: (body: string) => string;
  readonly #lateWrites: boolean;
  readonly #history: JudgedOperation[][] = [];
  #worlds: World[] = [{ state: undefined, pending: [] }];

  /** @param lateWrites whether what a killed process had sent may arrive while others work already */
  constructor(id: string, hash: (body: string) => string, lateWrites: boolean) {
    this.id = id;
    this.#hash = hash;
    this.#lateWrites = lateWrites;
  }

  /** Whether it certainly has a record, certainly none, or may have one. */
  get presence(): "yes" | "no" | "maybe" {
    if (this.#worlds.every(({ state }) => state === undefined)) return "no";
    return this.#worlds.every(({ state }) => state !== undefined) ? "yes" : "maybe";
  }

  /** Takes in operations that ran at once. @throws when no order of them explains the answers */
  apply(operations: readonly JudgedOperation[]): void {
    const own = operations.filter(({ operation }) => !("id" in operation) || operation.id === this.id);
    if (own.length === 0) return;
    this.#history.push([...own]);
    const next = permutations(own).flatMap((order) => {
      let worlds = this.#worlds;
      for (const one of order) worlds = worlds.flatMap((world) => this.#advance(world, one));
      return worlds;
    });
    this.#worlds = [...new Map(next.map((world) => [JSON.stringify(world), world])).values()];
    if (next.length === 0)
      throw new TypeError(
        `no order of these explains the answers for ${this.id}: ${JSON.stringify(this.#history)}`,
      );
  }

  #advance(world: World, one: JudgedOperation): World[] {
    const isLate = this.#lateWrites && one.answer === undefined;
    return this.#arrivals(world).flatMap(({ state, pending }) =>
      this.#step(state, one).map((next, at) => ({
        state: next,
        pending: isLate && at === 0 ? [...pending, one] : pending,
      })),
    );
  }

  /** The world, and what it becomes if some of what is pending arrives. */
  #arrivals(world: World): World[] {
    const arrived = world.pending.flatMap(({ operation, aged }, at) =>
      this.#arrivals({
        state: this.#change(world.state, operation, aged),
        pending: world.pending.filter((_, index) => index !== at),
      }),
    );
    return [world, ...arrived];
  }

  /** The states after one operation; of one without an answer first the one where nothing happened. */
  #step(state: IdState, { operation, answer, aged }: JudgedOperation): IdState[] {
    const changed = this.#change(state, operation, aged);
    if (answer === undefined) return [state, changed];
    if (answer.kind === "failed") return answer.changed === "no" ? [state] : [state, changed];
    const bodyHash = "body" in operation ? this.#hash(operation.body) : undefined;
    const isSame = (answered: { owner: string; bodyHash: string }) =>
      state !== undefined && answered.owner === state.owner && answered.bodyHash === state.bodyHash;
    switch (answer.kind) {
      case "new":
      case "added":
        return state === undefined && "owner" in operation && answer.owner === operation.owner
          ? [changed]
          : [];
      case "existing":
      case "present":
        return isSame(answer) && answer.bodyHash === bodyHash ? [state] : [];
      case "found":
        return isSame(answer) ? [state] : [];
      case "conflict": {
        const differs =
          state !== undefined &&
          (state.bodyHash !== bodyHash || (operation.kind === "restore" && state.owner !== operation.owner));
        return differs ? [state] : [];
      }
      case "full":
      case "absent":
        return state === undefined ? [state] : [];
      case "retired":
        return state !== undefined && changed === undefined ? [changed] : [];
      case "kept":
        return state === undefined || changed !== undefined ? [changed] : [];
      case "swept":
        return [changed];
    }
  }

  /** The state after an operation that took effect. */
  #change(state: IdState, operation: CrashOperation, aged: boolean): IdState {
    switch (operation.kind) {
      case "claim":
      case "restore":
        return state ?? { owner: operation.owner, bodyHash: this.#hash(operation.body), marked: false };
      case "retire":
        return state === undefined || aged ? undefined : { ...state, marked: true };
      case "sweep":
        return state?.marked === true && aged ? undefined : state;
      case "lookup":
        return state;
    }
  }
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, at) =>
    permutations(items.filter((_, index) => index !== at)).map((rest) => [item, ...rest]),
  );
}
