// The tokens of a rotation, as their files had them when it began.
import { readTokenFile } from "@cellkit/execution";
import { createCredentialFiles } from "@cellkit/router";
import { TokenFilesError } from "./errors.ts";

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

/** Reads them once. @throws TokenFilesError (`CELLKIT_CLI_TOKEN_FILES`) */
export async function holdPair({ current, next }: TokenFilePair): Promise<HeldPair> {
  return { current: await hold(current), next: next === undefined ? undefined : await hold(next) };
}

async function hold(file: string): Promise<HeldToken> {
  const read = await readTokenFile(file);
  if (read.kind === "token") return { file, token: read.token };
  throw new TokenFilesError(`${file} ${read.problem}`);
}

/** Those of a role that are in use or will be. */
export function tokensOf({ current, next }: HeldPair): readonly HeldToken[] {
  return next === undefined ? [current] : [current, next];
}

/** All tokens that are ever in use together are different. @throws TokenFilesError (`CELLKIT_CLI_TOKEN_FILES`), which says nothing of them */
export function checkFiles({
  client,
  backend,
  capability,
}: {
  readonly client: TokenFilePair;
  readonly backend: TokenFilePair;
  readonly capability: TokenFilePair | undefined;
}): void {
  const file = (pair: TokenFilePair, which: "current" | "next") => pair[which] ?? pair.current;
  try {
    for (const which of ["current", "next"] as const)
      createCredentialFiles({
        client: client.current,
        otherClient: file(client, "next"),
        backend: file(backend, which),
        ...(capability === undefined
          ? {}
          : { capability: capability.current, otherCapability: file(capability, "next") }),
        onProblem(error) {
          throw error;
        },
      }).load();
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new TokenFilesError(message, { cause });
  }
}
