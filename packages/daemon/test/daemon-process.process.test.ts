import { afterEach, expect, it } from "vitest";
import { DaemonProcess } from "../src/index.ts";

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
  await child.until("up", async () => lines.includes("stdout up"), 20_000);
  await child.kill();
  const dead = script('console.error("no such file"); process.exit(2)').child;
  await expect(dead.until("ready", async () => false, 20_000)).rejects.toThrow(
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
  await child.until("up", async () => lines.includes("stdout up"), 20_000);
  expect(await child.stop(50)).toEqual({ code: null, signal: "SIGKILL" });
});

it("a program that does not exist ends without code and signal", async () => {
  const child = new DaemonProcess("nothing", { command: "/no/such/program", args: [] });
  expect(await child.exited).toEqual({ code: null, signal: null });
  expect(child.lastLines.join()).toMatch(/could not be started: .*ENOENT/);
});
