import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { FleetKey } from "../../src/core/fleet-key.ts";

const script = fileURLToPath(new URL("owner-process.ts", import.meta.url));

export const benchKey = new FleetKey(Buffer.alloc(32, 1));

/** An owner in a process of its own. */
export interface Owner {
  readonly child: ChildProcess;
  readonly port: number;
}

/** Starts one. @param mode of records, or `plain` for node:http alone */
export async function startOwner(mode: "plain" | "off" | "required"): Promise<Owner> {
  const child = fork(script, [mode], { execArgv: ["--conditions=@cellkit/source", "--expose-gc"] });
  const [port] = await once(child, "message");
  return { child, port: Number(port) };
}

/** Asks the owner for a figure. */
export async function ask({ child }: Owner, question: "cpu" | "memory"): Promise<number> {
  child.send(question);
  const [figure] = await once(child, "message");
  return Number(figure);
}

/** CPU time of this process and the owner's that the work took, in microseconds. */
export async function cpuOf(owner: Owner, work: () => Promise<void>): Promise<number> {
  const ownerBefore = await ask(owner, "cpu");
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system + (await ask(owner, "cpu")) - ownerBefore;
}
