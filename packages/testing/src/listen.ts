import type { Server } from "node:net";
import { ListenError } from "./errors.ts";

/** Where a server of this package listens. */
export interface ListenAddress {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly backlog?: number;
}

/** Lets a server listen. @returns its port @throws {@link ListenError} (`CELLKIT_TESTING_LISTEN`) */
export async function listen(server: Server, at: ListenAddress): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(at, resolve);
    });
  } catch (cause) {
    throw new ListenError(at.host, at.port, { cause });
  }
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : at.port;
}
