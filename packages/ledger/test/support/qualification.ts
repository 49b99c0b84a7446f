/** What tests of the qualification start: agents with or without a fault, and places of their own. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AgentCommand, localPlace } from "../../src/qualification/agent-connection.ts";
import { makeProbe, newProbe } from "../../src/qualification/probe-place.ts";
import { Stage } from "../../src/qualification/stage.ts";

/** `lock` excludes nobody; `memory` is a ledger for each process alone; `forget` acknowledges what it never wrote. */
export type Fault = "none" | "lock" | "memory" | "forget";

/** The program of an agent at a URL. */
export function agentCommand(url: string, fault: Fault = "none"): AgentCommand {
  const program = fileURLToPath(new URL("qualification-agent.ts", import.meta.url));
  return {
    command: process.execPath,
    args: ["--conditions=@cellkit/source", program, url, fault],
    // Compiled code is kept between the many starts of a test run.
    env: { ...process.env, NODE_COMPILE_CACHE: new URL("../.cache/compile", import.meta.url).pathname },
  };
}

/** A directory that is removed at the end. */
export async function scratch(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "ledger-qualification-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Agents in a probe, for single checks. */
export async function stageAt(
  url: string,
  fault: Fault,
  agentCount: number,
): Promise<AsyncDisposable & { stage: Stage }> {
  const places = [localPlace(agentCommand(url, fault))];
  const stage = new Stage({ url, probe: newProbe(), bucket: undefined, places, signal: undefined });
  const removeProbe = await makeProbe(url, stage.probe, {});
  await stage.refill(new Map(places.map((place) => [place, agentCount])));
  return {
    stage,
    [Symbol.asyncDispose]: async () => {
      await stage.close();
      await removeProbe();
    },
  };
}

/** Whether this user may mount a file system of that kind at a path. */
export function mounted(path: string, args: readonly string[]): AsyncDisposable | undefined {
  if (spawnSync("mount", [...args, path]).status !== 0) return undefined;
  return { [Symbol.asyncDispose]: async () => void spawnSync("umount", [path]) };
}
