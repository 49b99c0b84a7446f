/** What tests of the qualification start: agents with or without a fault, and places of their own. */
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AgentCommand, localPlace } from "../../src/qualification/agent-connection.ts";
import { makeProbe, newProbe } from "../../src/qualification/probe-place.ts";
import { Stage } from "../../src/qualification/stage.ts";

/** `lock` excludes nobody; `unlocked` is a ledger that claims without one; `memory` is a ledger for each process alone; `forget` acknowledges what it never wrote. */
export type Fault = "none" | "lock" | "unlocked" | "memory" | "forget";

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

/** A directory that is removed at the end. @param within where it is made; `/dev/shm` is in memory on every Linux */
export async function scratch(within = tmpdir()): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(within, "ledger-qualification-"));
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

/**
 * A small file system of its own in a file, mounted for as long as it is not disposed of; undefined where this user may not
 * mount, by itself or through sudo without a password. In CI that is a failure.
 */
export async function smallVolume(
  sizeBytes: number,
): Promise<(AsyncDisposable & { path: string }) | undefined> {
  const place = await scratch();
  const [image, path] = [`${place.path}/image`, `${place.path}/volume`];
  await writeFile(image, Buffer.alloc(sizeBytes));
  await mkdir(path);
  const owner = `root_owner=${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`;
  const isMade = spawnSync("mkfs.ext4", ["-q", "-N", "2000", "-E", owner, image]).status === 0;
  const before = isMade
    ? [[], ["sudo", "-n"]].find((words) => runs([...words, "mount", "-o", "loop", image, path]))
    : undefined;
  if (before !== undefined)
    return {
      path,
      [Symbol.asyncDispose]: async () => {
        runs([...before, "umount", path]);
        await place[Symbol.asyncDispose]();
      },
    };
  await place[Symbol.asyncDispose]();
  if (process.env["CI"] === "true")
    throw new TypeError("no file system could be made in a file (mkfs.ext4, mount)");
  return undefined;
}

function runs([command = "", ...args]: readonly string[]): boolean {
  return spawnSync(command, args).status === 0;
}
