/** Kill -9 of a child at a chosen system call, by the fault injection of strace. */
import { execFileSync, spawnSync } from "node:child_process";
import type { ChildRun, CrashStore } from "./crash-rounds.ts";

/** System calls that change something, or give the lock back. */
const CALLS = ["openat", "write", "pwrite64", "fsync", "link", "unlink", "flock", "mkdir", "close"];

/** A call before which the child dies: the nth of its name in whichever thread makes so many. */
interface CrashPoint {
  call: string;
  nth: number;
}

/** Whether strace is there; installs it if this may be done. */
export function hasStrace(): boolean {
  const works = () => spawnSync("strace", ["-qq", "-e", "trace=none", "true"]).status === 0;
  if (works()) return true;
  if (process.getuid?.() !== 0) return false;
  try {
    execFileSync("apt-get", ["install", "-y", "-q", "strace"], { stdio: "ignore", timeout: 120_000 });
  } catch {
    return false;
  }
  return works();
}

/**
 * The part of a crash store that kills from outside. The dry run writes every call to the child's stderr, from which the points
 * are taken: the calls since the first that names the ledger's directory.
 */
export class StraceCrashes implements Pick<CrashStore, "wrap" | "countPoints"> {
  readonly #directory: string;
  readonly #points = new Map<string, CrashPoint[]>();

  /** @param directory below which the places of all rounds lie */
  constructor(directory: string) {
    this.#directory = directory;
  }

  readonly wrap: NonNullable<CrashStore["wrap"]> = (command, { place, crashAt }) => {
    // Without --seccomp-bpf, which makes the injection miss the main thread (strace 6.1).
    const strace = ["strace", "-f", "-qq", "--signal=none"];
    if (crashAt === undefined) return [...strace, `--trace=${CALLS.join(",")}`, ...command];
    const point = this.#points.get(scenarioOf(place))?.[crashAt - 1];
    if (point === undefined) throw new TypeError(`${place} has no point ${crashAt}`);
    const inject = `--inject=${point.call}:signal=SIGKILL:when=${point.nth}`;
    return [...strace, "--output=/dev/null", `--trace=${point.call}`, inject, ...command];
  };

  readonly countPoints = ({ stderr }: ChildRun): number => {
    const counts = new Map<string, number>();
    const points = new Map<string, CrashPoint>();
    let scenario: string | undefined;
    for (const line of stderr.split("\n")) {
      const [, thread = "", call = ""] = /^(?:\[pid +([0-9]+)\] )?([a-z0-9]+)\(/.exec(line) ?? [];
      if (!CALLS.includes(call)) continue;
      const nth = (counts.get(`${thread} ${call}`) ?? 0) + 1;
      counts.set(`${thread} ${call}`, nth);
      const at = line.indexOf(`${this.#directory}/`);
      if (at >= 0)
        scenario ??= scenarioOf(/^[a-z0-9-]+/.exec(line.slice(at + this.#directory.length + 1))?.[0] ?? "");
      if (scenario !== undefined) points.set(`${call} ${nth}`, { call, nth });
    }
    if (scenario !== undefined) this.#points.set(scenario, [...points.values()]);
    return points.size;
  };
}

/** A place is named by its scenario, a process and a number. */
function scenarioOf(place: string): string {
  return place.replace(/-[0-9]+-[0-9]+$/, "");
}
