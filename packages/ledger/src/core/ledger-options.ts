/** The options that all stores share, checked once at the door. */
import { LedgerOptionError } from "../errors.ts";
import type { LedgerOptions } from "../ledger.ts";

/** {@link LedgerOptions} with every default filled in. */
export interface ResolvedLedgerOptions {
  name: string;
  /** Undefined: no limit. */
  capacity: number | undefined;
  retirable: boolean;
  requireExisting: boolean;
  now: () => number;
}

/** The name of a router's main ledger. */
export const DEFAULT_LEDGER_NAME = "executions";

/**
 * Fills in the defaults.
 * @param defaults what differs between stores; `now` is the caller's clock
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for a name outside of `[a-z0-9-]{1,64}` and a capacity that is no positive integer
 */
export function resolveLedgerOptions(
  options: LedgerOptions,
  defaults: { capacity: number | undefined; now: () => number },
): ResolvedLedgerOptions {
  const { name = DEFAULT_LEDGER_NAME, capacity = defaults.capacity, now = defaults.now } = options;
  if (typeof name !== "string" || !/^[a-z0-9-]{1,64}$/.test(name))
    throw new LedgerOptionError(`a ledger's name has 1 to 64 of a-z 0-9 -, unlike ${JSON.stringify(name)}`);
  if (typeof now !== "function") throw new LedgerOptionError(`now must be a function, not ${typeof now}`);
  // A text "false" would be true.
  for (const option of ["retirable", "requireExisting"] as const)
    if (!["undefined", "boolean"].includes(typeof options[option]))
      throw new LedgerOptionError(`${option} must be true or false, not ${typeof options[option]}`);
  if (capacity !== undefined && !(Number.isSafeInteger(capacity) && capacity >= 1))
    throw new LedgerOptionError(`capacity must be an integer of 1 or more, not ${capacity}`);
  return {
    name,
    capacity,
    retirable: options.retirable ?? false,
    requireExisting: options.requireExisting ?? false,
    now,
  };
}

/** @throws LedgerOptionError for a quarantine that is no non-negative number of milliseconds */
export function checkQuarantine(quarantineMs: number): void {
  if (!(Number.isFinite(quarantineMs) && quarantineMs >= 0))
    throw new LedgerOptionError(`quarantineMs must be a number of 0 or more, not ${quarantineMs}`);
}

/** @throws LedgerOptionError for a key that is not 64 lowercase hex digits */
export function checkKey(key: string): void {
  if (typeof key !== "string" || !/^[0-9a-f]{64}$/.test(key))
    throw new LedgerOptionError("a record's key is 64 lowercase hex digits, the BLAKE3-256 of its id");
}
