import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The token of dispatchers that were given none. */
export const testBackendToken = "backend-token-for-tests-only";

/** The client token of mocked routers that were given none. */
export const testClientToken = "client-token-for-tests-only";

/** A token in a file, where clients and daemons want it. */
export interface TokenFile extends AsyncDisposable {
  readonly path: string;
  /** Another token, from the next call on. */
  write(token: string): Promise<void>;
  /** Removes it. Idempotent. */
  close(): Promise<void>;
}

/** Puts a token into a file of its own below the system's temporary directory. */
export async function tokenFile(token: string): Promise<TokenFile> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-token-"));
  const path = join(directory, "token");
  const write = (next: string) => writeFile(path, next, { mode: 0o600 });
  await write(token);
  const close = () => rm(directory, { recursive: true, force: true });
  return { path, write, close, [Symbol.asyncDispose]: close };
}
