// The tokens of a rotation, as their files had them when it began.
import { readTokenFile } from "@cellkit/execution";
import { TokenRotationError } from "./errors.ts";

/** A token's file as it is, and the one that takes its place; without that, the role is not rotated. */
export interface TokenFilePair {
  readonly current: string;
  readonly next: string | undefined;
}

/** A token as its file had it when the walk began: the file of a current one may be the very file that a step replaces. */
export interface HeldToken {
  readonly file: string;
  readonly token: string;
}

/** A role's tokens; without the next one, the role is not rotated. */
export interface HeldPair {
  readonly current: HeldToken;
  readonly next: HeldToken | undefined;
}

/** Reads them once. @throws TokenRotationError (`CELLKIT_CLI_TOKEN_ROTATION`) */
export async function holdPair({ current, next }: TokenFilePair): Promise<HeldPair> {
  return { current: await hold(current), next: next === undefined ? undefined : await hold(next) };
}

async function hold(file: string): Promise<HeldToken> {
  const read = await readTokenFile(file);
  if (read.kind === "token") return { file, token: read.token };
  throw new TokenRotationError("the files", [{ place: file, reason: read.problem }]);
}

/** Those of a role that are in use or will be. */
export function tokensOf({ current, next }: HeldPair): readonly HeldToken[] {
  return next === undefined ? [current] : [current, next];
}
