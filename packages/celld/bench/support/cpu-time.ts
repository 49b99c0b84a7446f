import { readdir, readFile } from "node:fs/promises";

/** CPU time that processes have used so far, all their threads together, in microseconds (Linux: /proc/PID/task/TID/schedstat). */
export async function cpuMicroseconds(pids: readonly number[]): Promise<number> {
  let total = 0;
  for (const pid of pids) {
    for (const task of await readdir(`/proc/${pid}/task`)) {
      const [nanoseconds = "0"] = (await readFile(`/proc/${pid}/task/${task}/schedstat`, "utf8")).split(" ");
      total += Number(nanoseconds) / 1_000;
    }
  }
  return total;
}
