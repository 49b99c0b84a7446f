// A workerd as a node of a fleet runs it, same binary, config, entry module and Worker, but without the node: its peers dial its
// cluster port itself.
import { type ChildProcess, spawn } from "node:child_process";
import { cp, mkdir, readFile, readlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "../../../../tools/test-support/free-port.ts";
import { until } from "../../../../tools/test-support/until.ts";
import type { TestNode } from "../../test/support/test-node.ts";

/** A running workerd. */
export interface PlainWorkerd {
  readonly process: ChildProcess;
  readonly pid: number;
  /** The unix socket at which it serves the Worker. */
  readonly path: string;
}

/** The unix socket at which the workerd of a data directory serves the Worker. */
export function publicSocketOf(directory: string): string {
  return join(directory, "sockets", "public");
}

/** Starts a workerd like that of `node` in `directory`, in a cluster at another prefix of the same bucket. */
export async function startPlainWorkerd(node: TestNode, directory: string): Promise<PlainWorkerd> {
  const like = await node.workerdPid();
  const port = await freePort();
  await mkdir(join(directory, "sockets"), { recursive: true });
  await mkdir(join(directory, "workerd"), { recursive: true });
  const [binary, from] = [await readlink(`/proc/${like}/exe`), await readlink(`/proc/${like}/cwd`)];
  const to = from.replace(node.directory, directory);
  await cp(from, to, { recursive: true });
  const file = join(to, "config.capnp");
  const config = (await readFile(file, "utf8"))
    .replaceAll(node.directory, directory)
    .replace(/advertise = "[^"]*"/, `advertise = "127.0.0.1:${port}"`)
    .replace(/address = "127\.0\.0\.1:0"/, `address = "127.0.0.1:${port}"`)
    .replace(/bucket = "[^"]*"/, `bucket = "s3://cells/plain"`);
  await writeFile(file, config);
  for (const [, path = directory] of config.matchAll(/path = "([^"]+)"/g))
    await mkdir(path, { recursive: true });
  const child = spawn(binary, ["serve", "--experimental", file, "config"], {
    cwd: to,
    env: { AWS_ALLOW_HTTP: "true" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  const path = publicSocketOf(directory);
  await until("workerd that listens", () => listens(path), 20_000);
  return { process: child, pid: child.pid ?? 0, path };
}

function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
