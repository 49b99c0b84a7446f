// `cellkit dev [DIR]`: a bucket and a fleet on this machine, redeployed and rolled when a file changes.
import { join, resolve } from "node:path";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { type LocalFleet, startLocalFleet } from "../local-fleet.ts";
import { watchProject } from "../watch-project.ts";

const schema = z.strictObject({
  project: z.string().default(".").meta({
    description: "The project's directory, with wrangler.jsonc or wrangler.json.",
    placeholder: "DIR",
    positional: true,
  }),
  nodes: z.number().int().min(1).max(16).default(1).meta({
    description: "Nodes of the fleet.",
    env: "CELLKIT_DEV_NODES",
  }),
  port: z.number().int().min(0).max(65_000).default(8080).meta({
    description: "The first node's public port; the others follow. 0 takes free ones.",
    env: "CELLKIT_DEV_PORT",
  }),
  directory: z.string().optional().meta({
    description: "Where the bucket and the nodes keep their data; cells live on in it.",
    placeholder: "DIR",
    defaultText: "DIR/.cellkit",
    env: "CELLKIT_DEV_DIRECTORY",
    emptyIsUnset: true,
  }),
  watch: z
    .boolean()
    .default(true)
    .meta({ description: "Rebuild and redeploy when files of the project change." }),
  logs: z.boolean().default(false).meta({ description: "Show the log lines of every process." }),
});

/** The command. */
export const dev = defineCommand<typeof schema, CommandContext>({
  summary: "Run a project on a fleet of this machine",
  description:
    "Starts a bucket and a fleet on this machine, deploys the project and rolls the fleet, node by node, when its files change.",
  schema,
  exitCodes: {
    0: "stopped by a signal",
    1: "failure; standard error says why",
    2: "bad flags",
    130: "second signal",
  },
  examples: [
    {
      command: "cellkit dev",
      description: "The project of this directory, on one node at http://127.0.0.1:8080",
    },
    { command: "cellkit dev examples/chat --nodes 3", description: "Three nodes, at ports 8080 to 8082" },
  ],
  async run(config, { note, signal }) {
    const project = resolve(config.project);
    const fleet = await startLocalFleet({
      directory: config.directory ?? join(project, ".cellkit"),
      nodeCount: config.nodes,
      port: config.port,
      onProgress: note,
      ...(config.logs ? { onLog: (name: string, line: string) => note(`[${name}] ${line}`) } : {}),
    });
    try {
      await deployAndTell(fleet, project, note);
      note("ready; stop with Ctrl-C");
      const changes = config.watch ? watchProject(project, signal) : never(signal);
      for await (const file of changes) {
        note(`${file} changed`);
        const version = await deployAndTell(fleet, project, note);
        if (version !== undefined) await roll(fleet, note, signal);
      }
    } finally {
      note("the fleet stops");
      await fleet.close();
    }
    return 0;
  },
});

/** Deploys; a project that does not build is told, and the fleet goes on with what it has. */
async function deployAndTell(
  fleet: LocalFleet,
  project: string,
  note: (line: string) => void,
): Promise<string | undefined> {
  try {
    const { scriptName, version, created, warnings } = await fleet.deploy(project);
    for (const warning of warnings) note(`warning: ${warning}`);
    if (!created) return undefined;
    note(`deployed ${scriptName} ${version}`);
    return version;
  } catch (error) {
    note(`not deployed: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** Restarts node after node, each drained first, so that a client with retries notices nothing. */
async function roll(fleet: LocalFleet, note: (line: string) => void, signal: AbortSignal): Promise<void> {
  for (const node of fleet.nodes) {
    if (signal.aborted) return;
    await node.process.drain();
    try {
      await fleet.restart(node);
      note(`${node.name} runs it`);
    } catch (error) {
      note(`${node.name} does not run it: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

/** No change ever; ends when the signal is aborted. */
async function* never(signal: AbortSignal): AsyncGenerator<string> {
  if (!signal.aborted) await new Promise((done) => signal.addEventListener("abort", done, { once: true }));
}
