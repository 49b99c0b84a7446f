/** What every store does before and after its own part of a claim. */
import { LedgerOptionError, OwnerChoiceError } from "../errors.ts";
import type { Claim, Owner } from "../ledger.ts";
import { originProblem } from "./origin.ts";
import { formatRecord, MAX_RECORD_BYTES } from "./record.ts";

/** The most bytes that an id may have. */
const MAX_ID_BYTES = 4_096;

const ILL_FORMED = "has no half of a surrogate pair in it: it could not be told from another";

/**
 * @throws LedgerOptionError for an id that is no text, empty or too long, and for one with half of a surrogate pair: it has no
 *   UTF-8, and would become the same bytes as every other such id
 */
export function checkId(id: string): void {
  if (typeof id !== "string") throw new LedgerOptionError(`an id is a text, not ${describeType(id)}`);
  const length = Buffer.byteLength(id);
  if (length === 0 || length > MAX_ID_BYTES)
    throw new LedgerOptionError(`an id has 1 to ${MAX_ID_BYTES} bytes, not ${length}`);
  if (!id.isWellFormed()) throw new LedgerOptionError(`an id ${ILL_FORMED}`);
}

/** @throws LedgerOptionError for a body that is neither bytes nor text, or a text that has no UTF-8 */
export function checkBody(body: Uint8Array | string): void {
  if (typeof body !== "string") {
    // By its tag: an array of bytes may come from another realm.
    if (Object.prototype.toString.call(body) === "[object Uint8Array]") return;
    throw new LedgerOptionError(`a body is a Uint8Array or a text, not ${describeType(body)}`);
  }
  if (!body.isWellFormed()) throw new LedgerOptionError(`a body that is a text ${ILL_FORMED}`);
}

/** @throws LedgerOptionError for an owner whose record could not be read again, or not be kept by every store */
export function checkOwner(owner: Owner): void {
  const { backend, bodyHash } = owner ?? {};
  if (typeof backend !== "string" || typeof bodyHash !== "string")
    throw new LedgerOptionError("the owner to be restored has a backend and a bodyHash, both texts");
  const problem = originProblem(backend);
  if (problem !== undefined) throw new LedgerOptionError(`the owner to be restored is ${problem}`);
  if (bodyHash === "" || bodyHash.includes("\0") || !bodyHash.isWellFormed())
    throw new LedgerOptionError(
      "the owner to be restored has a bodyHash that is empty, or has a NUL or half of a surrogate pair in it",
    );
  if (Buffer.byteLength(formatRecord(owner)) > MAX_RECORD_BYTES)
    throw new LedgerOptionError(
      `the owner to be restored needs a record of more than ${MAX_RECORD_BYTES} bytes`,
    );
}

/** The answer for an id that is recorded already. */
export function answerExisting(owner: Owner, bodyHash: string): Claim {
  return owner.bodyHash === bodyHash ? { kind: "existing", owner } : { kind: "conflict" };
}

/**
 * Asks for an owner and checks the answer.
 * @param signal ends the waiting for it, with the signal's reason
 * @throws OwnerChoiceError (CELLKIT_LEDGER_OWNER); LedgerOptionError (CELLKIT_LEDGER_OPTION) for what is no function
 */
export async function callChooseOwner(
  chooseOwner: () => Promise<string>,
  signal?: AbortSignal,
): Promise<string> {
  // A mistake in the program, which no later try mends.
  if (typeof chooseOwner !== "function")
    throw new LedgerOptionError(`chooseOwner must be a function, not ${typeof chooseOwner}`);
  let origin: string;
  try {
    origin = await untilAborted(chooseOwner, signal);
  } catch (cause) {
    signal?.throwIfAborted();
    throw new OwnerChoiceError(
      "no owner could be chosen for a new id; nothing was recorded, claim again later",
      { cause },
    );
  }
  const problem = typeof origin === "string" ? originProblem(origin) : "no text";
  if (problem !== undefined)
    throw new OwnerChoiceError(
      `the owner chosen for a new id is ${problem}: give http://HOST or http://HOST:PORT; nothing was recorded`,
    );
  return origin;
}

function describeType(value: unknown): string {
  if (value === null || typeof value !== "object") return value === null ? "null" : typeof value;
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

/** Does something, and stops waiting for it when the signal is aborted. */
async function untilAborted<T>(start: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return start();
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([start(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
