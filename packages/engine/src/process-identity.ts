// Which process a number means: a process id is used again after its process is gone, its start time is not (within one
// boot of the kernel and one process namespace).
import { readFile, readlink } from "node:fs/promises";

/** A process that can be recognised after the process that wrote this down is gone. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: clock ticks after boot. */
  readonly startTicks: string;
  readonly bootId: string;
  /** The process namespace, for example `pid:[4026531836]`; a number in another namespace says nothing. */
  readonly namespace: string;
}

/** What is known about a recorded process. `unknown`: another boot or namespace, or no /proc here (not Linux). */
export type ProcessFate = "alive" | "gone" | "unknown";

/** The identity of a running process, or undefined where there is no /proc or the process is gone. */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const here = await readNamespace();
  const stat = await readStat(pid);
  if (here === undefined || stat === undefined) return undefined;
  return { pid, startTicks: stat.startTicks, ...here };
}

/** Whether a recorded process still runs. A zombie counts as gone: it runs no code and holds no socket. */
export async function processFate(identity: ProcessIdentity): Promise<ProcessFate> {
  const here = await readNamespace();
  if (here === undefined) return "unknown";
  // A kernel that booted anew has none of the old processes.
  if (here.bootId !== identity.bootId || here.namespace !== identity.namespace) return "unknown";
  const stat = await readStat(identity.pid);
  if (stat === undefined || stat.state === "Z" || stat.state === "X") return "gone";
  return stat.startTicks === identity.startTicks ? "alive" : "gone";
}

/** Whether a recorded process ran on the kernel that runs here, in whatever namespace. */
export async function isOfThisBoot(identity: ProcessIdentity): Promise<boolean> {
  return (await readNamespace())?.bootId === identity.bootId;
}

/** Resident memory of a process in bytes, or undefined where /proc does not tell. */
export async function residentBytes(pid: number): Promise<number | undefined> {
  const text = await readText(`/proc/${pid}/status`);
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(text ?? "");
  return match?.[1] === undefined ? undefined : Number(match[1]) * 1024;
}

async function readNamespace(): Promise<{ bootId: string; namespace: string } | undefined> {
  const bootId = (await readText("/proc/sys/kernel/random/boot_id"))?.trim();
  const namespace = await readlink("/proc/self/ns/pid").catch(() => undefined);
  return bootId === undefined || namespace === undefined ? undefined : { bootId, namespace };
}

async function readStat(pid: number): Promise<{ state: string; startTicks: string } | undefined> {
  const text = await readText(`/proc/${pid}/stat`);
  // The second field is the command in parentheses and may itself hold spaces and parentheses.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  return state === undefined || startTicks === undefined ? undefined : { state, startTicks };
}

function readText(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
