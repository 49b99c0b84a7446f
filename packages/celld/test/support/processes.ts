// Which processes belong to a node: celld has the data directory in its environment, its workerd and the shell that watches
// over it have it in their arguments.
import { readdir, readFile } from "node:fs/promises";

/** A process found in /proc. */
export interface FoundProcess {
  pid: number;
  /** Its arguments, joined by spaces. */
  command: string;
}

/** All running processes that name `directory` in their arguments or environment; zombies are left out. */
export async function processesOf(directory: string): Promise<FoundProcess[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [command, environment] = await Promise.all([read(pid, "cmdline"), read(pid, "environ")]);
      const isOurs = pid !== process.pid && `${command}\0${environment}`.includes(directory);
      return isOurs ? [{ pid, command: command.replaceAll("\0", " ").trim() }] : [];
    }),
  );
  return found.flat();
}

/** A process that ends while it is being read has nothing to tell. */
function read(pid: number, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
}
