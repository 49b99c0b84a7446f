/** What rules expect, told as errors of their own: no test framework is needed. */
import { inspect, isDeepStrictEqual } from "node:util";
import { ConformanceError } from "../errors.ts";
import type { StoredLedger } from "../ledger.ts";

/** @throws ConformanceError unless both are deeply equal, members that are `undefined` included */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new ConformanceError(`${what}: expected ${inspect(expected)}, not ${inspect(actual)}`);
}

/** @throws ConformanceError unless the call is refused with this code */
export async function expectCode(call: () => Promise<unknown>, code: string, what: string): Promise<void> {
  await expectRefusal(call, (error) => error instanceof Error && "code" in error && error.code === code, {
    expected: code,
    what,
  });
}

/** @throws ConformanceError unless the call rejects with an error that fits */
export async function expectRefusal(
  call: () => Promise<unknown>,
  fits: (error: unknown) => boolean,
  { expected, what }: { expected: string; what: string },
): Promise<void> {
  let answer: unknown;
  try {
    answer = await call();
  } catch (cause) {
    if (fits(cause)) return;
    throw new ConformanceError(`${what}: expected ${expected}, not ${inspect(cause)}`, { cause });
  }
  throw new ConformanceError(`${what}: expected ${expected}, not the answer ${inspect(answer)}`);
}

/** @throws ConformanceError unless every handle has the same `ledgerId`, and that is a text that says something */
export function expectSameLedger(handles: readonly (StoredLedger | undefined)[], what: string): void {
  const ids = handles.map((handle) => handle?.ledgerId);
  const [first] = ids;
  if (typeof first !== "string" || first === "" || new Set(ids).size > 1)
    throw new ConformanceError(`${what}: expected one non-empty text as their ledgerId, not ${inspect(ids)}`);
}

/** An owner's choice that counts how often it was asked. */
export function chooser(backend: string): { choose: () => Promise<string>; readonly callCount: number } {
  let callCount = 0;
  return {
    choose: async () => {
      callCount++;
      return backend;
    },
    get callCount() {
      return callCount;
    },
  };
}
