// What happens to the fleet while the traffic goes on: every node is drained and restarted in turn, then one is killed.
import { setTimeout as pause } from "node:timers/promises";
import type { LocalFleet, LocalNode } from "cellkit";
import type { Tally } from "./tally.ts";
import type { Traffic } from "./traffic.ts";

/** How long the script lets the traffic run between two of its steps. */
export interface ScriptOptions {
  settleMs: number;
  /** Ends the script early; what runs then is not counted as a whole run. */
  signal: AbortSignal;
  onStep: (line: string) => void;
}

/** New rooms of one step: a node that was restarted holds no cells until somebody asks it for one. */
const roomsPerStep = 4;

/** Drains and restarts each node, kills one and starts it again. */
export async function runScript(
  fleet: LocalFleet,
  traffic: Traffic,
  tally: Tally,
  options: ScriptOptions,
): Promise<void> {
  const addRooms = async (step: string) => {
    await traffic.allNodesAdmitted();
    traffic.addRooms(Array.from({ length: roomsPerStep }, (_, n) => `${step}-${n + 1}`));
    await pause(options.settleMs, undefined, { signal: options.signal });
  };
  options.onStep("rooms open, traffic begins");
  await addRooms("lobby");
  for (const node of fleet.nodes) {
    await addRooms(`before-${node.name}`);
    await drainAndRestart(fleet, node, tally, options);
  }
  await addRooms("before-kill");
  await killAndRestart(fleet, await busiest(fleet), tally, options);
  await pause(options.settleMs, undefined, { signal: options.signal });
}

/** The node with the most cells: to kill one without any would show nothing. */
async function busiest(fleet: LocalFleet): Promise<LocalNode> {
  const counted = await Promise.all(fleet.nodes.map(async (node) => ({ node, cells: await cellsOf(node) })));
  return counted.reduce((most, each) => (each.cells > most.cells ? each : most)).node;
}

/** Upper bound of the cells a node holds. */
async function cellsOf({ process: node }: LocalNode): Promise<number> {
  const { occupied } = await node.state();
  return typeof occupied === "number" ? occupied : 0;
}

async function drainAndRestart(
  fleet: LocalFleet,
  node: LocalNode,
  tally: Tally,
  options: ScriptOptions,
): Promise<void> {
  const cells = await cellsOf(node);
  options.onStep(`${node.name}: SIGTERM, it drains (holds at most ${cells} cells)`);
  tally.node({ node: node.name, what: "drain", atMs: performance.now(), cells });
  const { code } = await node.process.drain();
  tally.node({ node: node.name, what: "drained", atMs: performance.now(), exitCode: code });
  options.onStep(`${node.name}: ended with code ${code}, it starts again`);
  await fleet.restart(node);
  tally.node({ node: node.name, what: "ready", atMs: performance.now() });
}

async function killAndRestart(
  fleet: LocalFleet,
  node: LocalNode,
  tally: Tally,
  options: ScriptOptions,
): Promise<void> {
  const cells = await cellsOf(node);
  options.onStep(`${node.name}: SIGKILL (holds at most ${cells} cells)`);
  tally.node({ node: node.name, what: "kill", atMs: performance.now(), cells });
  const { code } = await node.process.kill();
  tally.node({ node: node.name, what: "killed", atMs: performance.now(), exitCode: code });
  await fleet.restart(node);
  tally.node({ node: node.name, what: "ready", atMs: performance.now() });
  options.onStep(`${node.name}: serves again`);
}
