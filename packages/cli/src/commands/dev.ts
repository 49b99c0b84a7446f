// `cellkit dev [DIR]`: a bucket and a fleet on this machine, redeployed and rolled when a file changes.
import { join, resolve } from "node:path";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import type { Bundle } from "@cellkit/deployment";
import { z } from "zod";
import type { LocalFleet, LocalFleetOptions } from "../local-fleet.ts";

/** The command's options. */
export const devOptions = z.strictObject({
  project: z.string().default(".").meta({
    description: "The project's directory, with wrangler.jsonc or wrangler.json.",
    placeholder: "DIR",
    positional: true,
  }),
  nodes: z.number().int().min(1).max(16).default(1).meta({
    description: "Nodes of the fleet, 1 to 16.",
    env: "CELLKIT_DEV_NODES",
  }),
  port: z.number().int().min(0).max(65_000).default(8080).meta({
    description: "The first node's public port; the others follow. 0 takes free ones.",
    env: "CELLKIT_DEV_PORT",
  }),
  directory: z.string().optional().meta({
    description: "Where the bucket and the nodes keep their data; cells live on in it.",
    placeholder: "DIR",
    defaultText: ".cellkit in the project",
    env: "CELLKIT_DEV_DIRECTORY",
    emptyIsUnset: true,
  }),
  watch: z
    .boolean()
    .default(true)
    .meta({ description: "Rebuild, redeploy and restart node after node when files of the project change." }),
  logs: z.boolean().default(false).meta({
    description: "Show every log line of every process, not only what the Worker prints and what fails.",
  }),
});

/** A request that does not end holds up a roll for at most half of this; workerd needs the other half for its own stop. */
const drainMs = 12_000;

/** The command. */
export const dev = defineCommand<typeof devOptions, CommandContext>({
  description:
    "Starts a bucket and a fleet on this machine with the project deployed, and rolls the fleet, node after node, when files change. Prints the nodes' URLs. Ctrl-C ends all of it at once: what was acknowledged is in the data directory, and there the next time.",
  schema: devOptions,
  exitCodes: {
    0: "stopped by a signal",
    1: "failure: the Worker does not compile or load, a port is taken; standard error says why",
    2: "bad flags or environment, no Wrangler project, or a configuration that does not fit",
    130: "a second signal ended it at once",
  },
  examples: [
    {
      command: "cellkit dev",
      description: "The project of this directory, on one node at http://127.0.0.1:8080",
    },
    { command: "cellkit dev examples/chat --nodes 3", description: "Three nodes, at ports 8080 to 8082" },
  ],
  async run(config, { defer, note, print, signal }) {
    const [{ DevSession }, { startLocalFleet }, { lineForPeople }, { readProject }] = await Promise.all([
      import("../dev-session.ts"),
      import("../local-fleet.ts"),
      import("../node-log.ts"),
      import("../project.ts"),
    ]);
    const project = resolve(config.project);
    const directory = resolve(config.directory ?? join(project, ".cellkit"));
    let bundle: Bundle;
    try {
      bundle = await readProject(project, signal);
    } catch (error) {
      if (signal.aborted) return 0;
      throw error;
    }
    for (const warning of bundle.warnings) note(`warning: ${warning}`);
    const watching = config.watch ? { watchWithout: directory } : {};
    const session = new DevSession({ project, bundle, note, signal, ...watching });
    defer("the watched files", () => session.close());
    const settings: LocalFleetOptions = {
      directory,
      nodeCount: config.nodes,
      port: config.port,
      project: bundle,
      env: { CELLD_SHUTDOWN_DRAIN_MS: process.env["CELLD_SHUTDOWN_DRAIN_MS"] ?? String(drainMs) },
      signal,
      onProgress: note,
      onLog: (name, line) => {
        const shown = config.logs ? line : lineForPeople(line);
        if (shown !== undefined) note(`[${name}] ${shown}`);
      },
      onEnded: (name, reason) => session.ended(name, reason),
    };
    let fleet: LocalFleet;
    try {
      fleet = await startLocalFleet(settings);
    } catch (error) {
      if (signal.aborted) return 0;
      throw error;
    }
    try {
      for (const { publicUrl } of fleet.nodes) print(publicUrl);
      note("ready; stop with Ctrl-C");
      await session.run(fleet);
      return 0;
    } finally {
      await fleet.kill();
    }
  },
});
