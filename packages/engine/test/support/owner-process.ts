// Starts test/fixtures/owner.ts and waits until its engine serves.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { WorkerdEngineOptions } from "../../src/index.ts";

/** What the process said about its engine, and the process. */
export interface Owner {
  readonly process: ChildProcess;
  readonly childPid: number;
  readonly membership: string;
  /** Its engine's public socket, in the shape that `ask` takes. */
  readonly engine: { readonly publicSocket: string };
}

/** Options that can be written as JSON. */
export type OwnerOptions = Pick<
  WorkerdEngineOptions,
  "bucketUrl" | "endpoint" | "credentials" | "directory" | "advertise" | "unsafeTimeDivisor"
>;

/** Puts a command into a process namespace of its own, as a container does. Its end is the end of all that is in there. */
const inNamespace = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/** Whether process namespaces can be made here: that needs rights. */
export function canMakeNamespaces(): boolean {
  const [command = "", ...args] = inNamespace;
  return spawnSync(command, [...args, "true"]).status === 0;
}

/** Starts an owner process, in a process namespace of its own where that is asked for. */
export async function startOwner(options: OwnerOptions, place: { namespace?: boolean } = {}): Promise<Owner> {
  const script = fileURLToPath(new URL("../fixtures/owner.ts", import.meta.url));
  const [command = "", ...args] = [
    ...(place.namespace === true ? inNamespace : []),
    ...[process.execPath, "--conditions=@cellkit/source", script, JSON.stringify(options)],
  ];
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    // What a killed process leaves in the temporary directory goes with the test's own.
    env: { ...process.env, TMPDIR: dirname(options.directory) },
  });
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, "line").then(([text]) => String(text)),
    once(child, "exit").then(([code]) => {
      throw new TypeError(`the owner process ended with ${code}`);
    }),
  ]);
  const { pid, membership, publicSocket } = JSON.parse(line);
  return { process: child, childPid: pid, membership, engine: { publicSocket } };
}
