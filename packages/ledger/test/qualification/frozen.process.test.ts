import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

it("a frozen agent ends with whoever froze it, even after kill -9", async () => {
  const program = fileURLToPath(new URL("../support/freezing-child.ts", import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@cellkit/source", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const frozen = Number(line);
  try {
    expect(isThere(frozen)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "close");
    const deadlineMs = performance.now() + 20_000;
    while (isThere(frozen) && performance.now() < deadlineMs) await delay(10);
    expect(isThere(frozen)).toBe(false);
  } finally {
    if (isThere(frozen)) process.kill(frozen, "SIGKILL");
  }
});
