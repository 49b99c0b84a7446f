// `npm run demo`: the main job, end to end, with a verdict.

import { subscribe } from "node:diagnostics_channel";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Fleet } from "@cellkit/client";
import { type LocalFleet, startLocalFleet } from "cellkit";
import { LiveTable } from "./live-table.ts";
import { busyMachine, type MachineLoad, measureLoad } from "./machine-load.ts";
import { writeReport } from "./report.ts";
import { runScript } from "./script.ts";
import { breaches, type Summary, Tally } from "./tally.ts";
import { origin, Traffic } from "./traffic.ts";

const help = `Usage: npm run demo -- [options]

Starts a bucket and a fleet, sends it traffic, drains and restarts every node, kills one, and says whether anything
was lost.

  --seconds N    go on for at least N seconds (default 30)
  --nodes N      nodes of the fleet, 2 to 9 (default 3)
  --report FILE  where the HTML report goes (default demo-report.html)
  --json         print the summary as one JSON object, the last line of standard output
  --keep         keep the data directory and print its path
  --logs         print the log lines of every process to standard error
  --help         print this

Exit codes: 0 every promise held, 1 one was broken or something did not start, 2 a bad option, 130 interrupted.`;

const options = readOptions();
const out = options.json ? process.stderr : process.stdout;
const directory = await mkdtemp(join(tmpdir(), "cellkit-demo-"));
process.exitCode = await run();

async function run(): Promise<number> {
  const table = new LiveTable(out, performance.now());
  const interrupted = new AbortController();
  // The second one ends the process at once, and its children with it.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
  let local: LocalFleet | undefined;
  try {
    local = await startLocalFleet({
      directory,
      nodeCount: options.nodes,
      onProgress: (line) => table.step(line),
      ...(options.logs
        ? { onLog: (name: string, line: string) => void process.stderr.write(`${name}: ${line}\n`) }
        : {}),
    });
    const summary = await play(local, table, interrupted.signal);
    return summary.held ? 0 : 1;
  } catch (error) {
    table.stop();
    if (interrupted.signal.aborted) out.write("interrupted; the fleet stops\n");
    else out.write(`the demo could not go on: ${error instanceof Error ? error.message : String(error)}\n`);
    return interrupted.signal.aborted ? 130 : 1;
  } finally {
    await local?.close();
    if (options.keep) out.write(`kept: ${directory}\n`);
    else await rm(directory, { recursive: true, force: true });
  }
}

/** Deploys, sends the traffic, lets the script do its worst, and tells what came of it. */
async function play(local: LocalFleet, table: LiveTable, signal: AbortSignal): Promise<Summary> {
  const project = fileURLToPath(new URL("../../chat", import.meta.url));
  const { scriptName, version } = await local.deploy(project);
  table.step(`deployed ${scriptName} ${version}`);
  await Promise.all(
    local.nodes.map(({ process: node }) =>
      node.process.until("serving", () => serves(node.publicUrl), 30_000),
    ),
  );

  const tally = new Tally();
  const fleet = new Fleet({
    authority: origin,
    endpoints: local.nodes.map(({ publicUrl }) => publicUrl),
    // A call that meets a cell whose owner was killed waits inside its node, which looks for the cell ever more seldom. A read
    // that is asked again elsewhere finds the cell as soon as it is back; only calls that may be repeated are cut like this.
    retry: { perTryTimeoutMs: 1_000 },
  });
  const traffic = new Traffic(fleet, tally, { paceMs: 100, largeEvery: 8 });
  try {
    subscribe("fleet:ws:close", (message) => tally.socketClosed((message as { code: number }).code));
    subscribe("fleet:ws:reconnect", () => {
      tally.sockets.reconnects += 1;
    });
    const startMs = performance.now();
    const loadSinceStart = measureLoad();
    table.follow(local, traffic, tally);
    await runScript(local, traffic, tally, {
      settleMs: 1_500,
      signal,
      onStep: (line) => table.step(line),
    });
    const leftMs = options.seconds * 1000 - (performance.now() - startMs);
    if (leftMs > 0) await pause(leftMs, undefined, { signal });
    return await finish({ local, traffic, tally, startMs, loadSinceStart, table });
  } finally {
    await traffic.stop();
    await fleet.destroy();
  }
}

/** Ends the traffic, asks the cells what they hold, and tells everything. */
async function finish(run: {
  local: { nodes: readonly unknown[] };
  traffic: Traffic;
  tally: Tally;
  startMs: number;
  loadSinceStart: () => MachineLoad;
  table: LiveTable;
}): Promise<Summary> {
  const { tally, startMs, table } = run;
  await run.traffic.stop();
  const endMs = performance.now();
  const load = run.loadSinceStart();
  table.step("traffic ended; every room is asked what it holds");
  await run.traffic.collectEffects();
  table.stop();
  const report = resolve(options.report);
  const summary = tally.summary({ nodes: run.local.nodes.length, startMs, endMs, report });
  const drains = tally.nodes.filter(({ what }) => what === "drain").length;
  const broken = breaches(summary, drains);
  await writeReport(report, { summary, tally, broken, startMs, endMs });
  if (options.json) process.stdout.write(`${JSON.stringify(summary)}\n`);
  else {
    const lines = Object.entries(summary).map(
      ([name, value]) => `  ${name.padEnd(22)} ${typeof value === "object" ? JSON.stringify(value) : value}`,
    );
    out.write(
      `\n${lines.join("\n")}\n\n${broken.length === 0 ? "every promise held" : broken.map((line) => `BROKEN: ${line}`).join("\n")}\n`,
    );
  }
  const busy = busyMachine(summary, drains, load);
  if (busy !== undefined) out.write(`${busy}\n`);
  return summary;
}

/** Whether the deployed Worker answers behind this address. */
async function serves(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/rooms/probe/boot`, { signal: AbortSignal.timeout(5_000) });
    await answer.body?.cancel();
    return answer.status === 200;
  } catch {
    // A node that does not answer yet: `until` asks again, and reports the process when it ends.
    return false;
  }
}

function readOptions(): {
  seconds: number;
  nodes: number;
  report: string;
  json: boolean;
  keep: boolean;
  logs: boolean;
} {
  const fail = (message: string): never => {
    process.stderr.write(`${message}\n\n${help}\n`);
    process.exit(2);
  };
  const number = (name: string, text: string, least: number, most: number): number => {
    const value = Number(text);
    return Number.isInteger(value) && value >= least && value <= most
      ? value
      : fail(`--${name} takes a whole number from ${least} to ${most}, not "${text}"`);
  };
  try {
    const { values } = parseArgs({
      options: {
        seconds: { type: "string", default: "30" },
        nodes: { type: "string", default: "3" },
        report: { type: "string", default: "demo-report.html" },
        json: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        logs: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (values.help) {
      process.stdout.write(`${help}\n`);
      process.exit(0);
    }
    return {
      seconds: number("seconds", values.seconds, 1, 3_600),
      nodes: number("nodes", values.nodes, 2, 9),
      report: values.report,
      json: values.json,
      keep: values.keep,
      logs: values.logs,
    };
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}
