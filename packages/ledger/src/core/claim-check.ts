/** What every store does before and after its own part of a claim. */
import { LedgerOptionError, OwnerChoiceError } from "../errors.ts";
import type { Claim, Owner } from "../ledger.ts";
import { originProblem } from "./origin.ts";

/** The most bytes that an id may have. */
export const MAX_ID_BYTES = 4_096;

/** @throws LedgerOptionError for an id that is empty or too long */
export function checkId(id: string): void {
  const length = Buffer.byteLength(id);
  if (length === 0 || length > MAX_ID_BYTES)
    throw new LedgerOptionError(`an id has 1 to ${MAX_ID_BYTES} bytes, not ${length}`);
}

/** The answer for an id that is recorded already. */
export function answerExisting(owner: Owner, bodyHash: string): Claim {
  return owner.bodyHash === bodyHash ? { kind: "existing", owner } : { kind: "conflict" };
}

/** Asks for an owner and checks the answer. @throws OwnerChoiceError */
export async function callChooseOwner(chooseOwner: () => Promise<string>): Promise<string> {
  let origin: string;
  try {
    origin = await chooseOwner();
  } catch (cause) {
    throw new OwnerChoiceError(
      "no owner could be chosen for a new id; nothing was recorded, claim again later",
      { cause },
    );
  }
  const problem = typeof origin === "string" ? originProblem(origin) : "no text";
  if (problem !== undefined)
    throw new OwnerChoiceError(`the owner chosen for a new id is ${problem}; nothing was recorded`);
  return origin;
}
