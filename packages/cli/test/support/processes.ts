import { readdir, readFile } from "node:fs/promises";

/** All running processes that name `directory` in their arguments or environment; zombies and this one are left out. */
export async function processesOf(directory: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [command, environment] = await Promise.all([read(pid, "cmdline"), read(pid, "environ")]);
      const isOne = Number(pid) !== process.pid && `${command}\0${environment}`.includes(directory);
      return isOne ? [`${pid} ${command.replaceAll("\0", " ").trim()}`] : [];
    }),
  );
  return found.flat();
}

/** A process that ends while it is being read has nothing to tell. */
function read(pid: string, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
}
