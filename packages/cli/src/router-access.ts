// How commands reach a router, and whether that can work at all.
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { RouterAccessError } from "./errors.ts";

/** How a router is reached. Files are read for each call. */
export interface RouterAccess {
  /** A file with certificates that a router's may come from, in place of the system's. */
  readonly caFile?: string | undefined;
  /** The certificate for what stands before the router and asks for one; together with its key. */
  readonly clientCertFile?: string | undefined;
  readonly clientKeyFile?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const file = (description: string, defaultText: string) =>
  z.string().min(1).optional().meta({ description, placeholder: "FILE", defaultText });

/** The options of a command that reaches routers. */
export const routerAccessOptions = {
  caFile: file("A file with the certificates that a router's may come from, for https:.", "the system's"),
  clientCert: file("The certificate that is shown to a `cellkit-edge` with --client-ca.", "none is shown"),
  clientKey: file("Its key.", "none is shown"),
};

/** What is wrong with them together. */
export function accessProblem({
  clientCert,
  clientKey,
}: {
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
}): { readonly path: "clientCert" | "clientKey"; readonly message: string } | undefined {
  if (clientCert !== undefined && clientKey === undefined)
    return { path: "clientKey", message: "is needed with --client-cert" };
  if (clientKey !== undefined && clientCert === undefined)
    return { path: "clientCert", message: "is needed with --client-key" };
  return undefined;
}

/** A call's options for `node:https`. Rejects with what reading the files does. */
export async function tlsOf({ caFile, clientCertFile, clientKeyFile }: RouterAccess): Promise<{
  ca: Buffer | undefined;
  cert: Buffer | undefined;
  key: Buffer | undefined;
}> {
  const read = async (path: string | undefined) => (path === undefined ? undefined : readFile(path));
  return { ca: await read(caFile), cert: await read(clientCertFile), key: await read(clientKeyFile) };
}

/** Looks whether the files can be read. @throws RouterAccessError (`CELLKIT_CLI_ROUTER_ACCESS`) */
export async function checkAccessFiles({
  caFile,
  clientCertFile,
  clientKeyFile,
}: RouterAccess): Promise<void> {
  for (const path of [caFile, clientCertFile, clientKeyFile]) {
    if (path === undefined) continue;
    try {
      await readFile(path);
    } catch (cause) {
      const { code = "unknown" } = cause as NodeJS.ErrnoException;
      throw new RouterAccessError(`${path} cannot be read (${code})`, { cause });
    }
  }
}
