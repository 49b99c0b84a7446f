// Where workerd's unix sockets lie: in the data directory, so that a killed node leaves nothing elsewhere and the next start
// there removes them. Not everywhere can they lie there: a socket's path is short, and some file systems have no sockets.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attempt } from "./data-directory.ts";
import { DataDirectoryError } from "./errors.ts";

/** The longest path of a unix socket that every system takes, with its closing zero byte. */
const socketPathBytes = 104;

/** The directory of one workerd's sockets. */
export interface SocketDirectory {
  readonly path: string;
  readonly publicSocket: string;
  readonly controlSocket: string;
  readonly peerSocket: string;
  readonly peerRpcSocket: string;
  /** Removes it with all that is in it. */
  remove(): Promise<void>;
}

/**
 * Makes an empty directory (0700) for the sockets of one workerd, in the data directory or else in the temporary one.
 *
 * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY) when neither will do
 */
export async function makeSocketDirectory(dataDirectory: string): Promise<SocketDirectory> {
  const inside = socketDirectory(join(dataDirectory, "sockets"));
  await attempt(dataDirectory, async () => {
    // What a killed predecessor left.
    await inside.remove();
    if (fits(inside)) await mkdir(inside.path, { mode: 0o700 });
  });
  if (fits(inside)) {
    if (await canListen(inside.controlSocket)) return inside;
    await inside.remove();
  }
  const outside = socketDirectory(await mkdtemp(join(tmpdir(), "cellkit-")));
  if (fits(outside)) return outside;
  await outside.remove();
  throw new DataDirectoryError(
    `the temporary directory ${tmpdir()} is too long for a unix socket: set TMPDIR to a short path`,
  );
}

function socketDirectory(path: string): SocketDirectory {
  return {
    path,
    publicSocket: join(path, "public"),
    controlSocket: join(path, "control"),
    peerSocket: join(path, "peer"),
    peerRpcSocket: join(path, "rpc"),
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

/** The control socket has the longest path. */
function fits({ controlSocket }: SocketDirectory): boolean {
  return Buffer.byteLength(controlSocket) < socketPathBytes;
}

/** Tries it; nothing is left of that. */
async function canListen(path: string): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once("error", () => resolve(false));
  server.listen(path, () => server.close(() => resolve(true)));
  return promise;
}
