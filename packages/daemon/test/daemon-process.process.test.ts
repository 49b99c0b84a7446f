import { readdir, readFile } from "node:fs/promises";
import { afterEach, expect, it } from "vitest";
import { DaemonProcess } from "../src/index.ts";
import { Toy } from "./support/toy.ts";

const running: DaemonProcess[] = [];
afterEach(() => Promise.all(running.splice(0).map((each) => each.kill())));

function script(source: string): { child: DaemonProcess; lines: string[] } {
  const lines: string[] = [];
  const child = new DaemonProcess("the script", {
    command: process.execPath,
    args: ["-e", source],
    onLine: (line, stream) => lines.push(`${stream} ${line}`),
  });
  running.push(child);
  return { child, lines };
}

it("hears each line of both streams and knows how the process ended", async () => {
  const { child, lines } = script('console.log("out"); console.error("err"); process.exitCode = 7');
  expect(await child.exited).toEqual({ code: 7, signal: null });
  expect(lines.sort()).toEqual(["stderr err", "stdout out"]);
  expect(child.exit).toEqual({ code: 7, signal: null });
});

it("waits for a condition, and explains with the last lines when the process ends first", async () => {
  const { child, lines } = script('console.log("up"); setInterval(() => {}, 1000)');
  await child.until("up", async () => lines.includes("stdout up"), 60_000);
  await child.kill();
  const dead = script('console.error("no such file"); process.exit(2)').child;
  await expect(dead.until("ready", async () => false, 60_000)).rejects.toThrow(
    /^the script ended \(code 2\) before it was ready; its last lines:\n {2}no such file$/,
  );
});

it("says so when the condition does not come true in time", async () => {
  const { child } = script("setInterval(() => {}, 1000)");
  await expect(child.until("ready", async () => false, 20)).rejects.toMatchObject({
    code: "CELLKIT_DAEMON_PROCESS",
  });
});

it("a stop that is not heard becomes SIGKILL after its bound", async () => {
  const { child, lines } = script(
    'process.on("SIGTERM", () => {}); console.log("up"); setInterval(() => {}, 1000)',
  );
  await child.until("up", async () => lines.includes("stdout up"), 60_000);
  expect(await child.stop(50)).toEqual({ code: null, signal: "SIGKILL" });
});

it("a program that does not exist ends as it does in a shell, and the last line names it", async () => {
  const child = new DaemonProcess("nothing", { command: "/no/such/program", args: [] });
  expect(await child.exited).toEqual({ code: 127, signal: null });
  expect(child.lastLines.join()).toMatch(/\/no\/such\/program: not found/);
});

it("a directory that does not exist ends without code and signal", async () => {
  const child = new DaemonProcess("nothing", {
    command: process.execPath,
    args: [],
    cwd: "/no/such/directory",
  });
  expect(await child.exited).toEqual({ code: null, signal: null });
  expect(child.lastLines.join()).toMatch(/could not be started: .*ENOENT/);
});

it.each(["SIGKILL", "SIGTERM"] as const)(
  "no child outlives a parent that ends by %s, not even one that ignores signals",
  async (signal) => {
    const parent = new Toy("toy-parent", []);
    running.push(parent.process);
    const { child } = await parent.said("up");
    parent.process.signal(signal);
    await parent.process.exited;
    await until(async () => (await membersOfSession(Number(child))).length === 0);
  },
);

it("a child has a session of its own, and nothing is left in it once it has ended", async () => {
  const { child, lines } = script('console.log("up"); setInterval(() => {}, 1000)');
  const pid = child.pid ?? 0;
  await child.until("up", async () => lines.includes("stdout up"), 60_000);
  // The child itself and the shell that watches over it.
  expect(await membersOfSession(pid)).toContain(pid);
  await child.kill();
  await until(async () => (await membersOfSession(pid)).length === 0);
});

/** The processes whose session that process leads, zombies left out (proc(5): `pid (name) state ppid group session`). */
async function membersOfSession(leader: number): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const members = await Promise.all(
    pids.map(async (pid) => {
      // A process that ends while it is being read is not a member.
      const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
      const [state, , , session] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      return Number(session) === leader && state !== "Z" ? [Number(pid)] : [];
    }),
  );
  return members.flat();
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error("the condition did not come true within 30 s");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
