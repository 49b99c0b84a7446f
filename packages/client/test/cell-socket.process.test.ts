/** Whether a socket keeps its process alive: spec row W49. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { closedPort } from "./support/closed-port.ts";
import { until } from "./support/socket-node.ts";
import { keep, startNode } from "./support/socket-scope.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/waiting-socket.ts", import.meta.url));

function start(url: string, mode: "ref" | "unref" | "later"): { child: ChildProcess; output(): string } {
  const child = spawn(process.execPath, ["--conditions=@cellkit/source", FIXTURE, url, mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  return { child, output: () => output };
}

describe("a process with nothing but a socket", () => {
  it("exits when the socket is unref'd and waits to dial again (W49)", async () => {
    const { child, output } = start(keep(await closedPort()).url, "unref");
    // An unref'd dial may be cut short by the exit: "waiting" is seen or not, the exit is what counts.
    expect(await once(child, "close")).toEqual([0, null]);
    expect(["", "waiting\n"]).toContain(output());
  });

  it("exits when the socket is unref'd and open", async () => {
    const node = await startNode();
    const { child } = start(node.url, "unref");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it.each(["waiting\n", "open\n"])("exits when the socket is unref'd while it is %j", async (state) => {
    const node = await startNode();
    const { child, output } = start(state === "open\n" ? node.url : keep(await closedPort()).url, "later");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(output()).toBe(state);
  });

  it("goes on while it waits, or is open, without unref (W49)", async () => {
    const node = await startNode();
    const waiting = start(keep(await closedPort()).url, "ref");
    const open = start(node.url, "ref");
    await until("the wait", () => waiting.output() === "waiting\n", 60_000);
    await until("the connection", () => open.output() === "open\n", 60_000);
    const [peer] = node.sockets;
    expect(peer).toBeDefined();
    const answered = new Promise((resolve) => peer?.once("pong", resolve));
    peer?.ping();
    await answered;
    expect([waiting.child.exitCode, open.child.exitCode]).toEqual([null, null]);
  });
});
