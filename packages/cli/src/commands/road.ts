// `cellkit road`: the relay of a machine on which several nodes run.
import { once } from "node:events";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { bucketOptions } from "../bucket-options.ts";

/** The command's options. */
export const roadOptions = z.strictObject({
  ...bucketOptions,
  port: z.number().int().min(0).max(65_535).default(8082).meta({
    description: "The fleet's road port, the same as the nodes' --road-port. 0 takes a free one.",
    env: "CELLD_ROAD_PORT",
  }),
});

/** The command. */
export const road = defineCommand<typeof roadOptions, CommandContext>({
  description:
    "Carries what the nodes of this machine send to their peers, until a signal ends it. Each node does that for itself unless it runs with --no-road-relay; but several on one machine share the port, and one that ends cuts what it carried for the others. Start this beside them and give each node --no-road-relay: it has the port to itself, and does not start where another relay listens. It listens on 0.0.0.0 and resets every connection that does not come to a node's alias, 127.77.x.y.",
  schema: roadOptions,
  exitCodes: {
    0: "stopped by a signal",
    1: "failure: the port is taken, the bucket cannot be reached; standard error says why",
    2: "bad flags or environment",
    130: "a second signal ended it at once",
  },
  examples: [
    { command: "cellkit road --bucket s3://cells/fleet", description: "For the nodes of this machine" },
  ],
  async run(config, { defer, note, print, signal }) {
    const { openBucket } = await import("@cellkit/bucket");
    const { openRelay, processName } = await import("@cellkit/celld");
    const { openFleetKeyring } = await import("@cellkit/peer");
    const { endpoint, region } = config;
    const bucket = openBucket(config.bucket, { region, endpoint });
    defer("the bucket", () => bucket.close());
    const keyring = await openFleetKeyring(bucket, {
      create: true,
      signal,
      onFailure: (error) => note(`the fleet key could not be read again: ${String(error)}`),
    });
    defer("the fleet key", () => keyring.close());
    const self = `road-${processName()}`;
    const { relay, port } = await openRelay({
      bucket,
      keyring,
      self,
      port: config.port,
      onFailure: ({ alias, error }) =>
        note(`${alias}: ${error instanceof Error ? error.message : String(error)}`),
    });
    defer("the relay", () => relay.close());
    note(`relaying on port ${port}; stop with Ctrl-C`);
    print(`export CELLD_ROAD_PORT=${port}\nexport CELLD_ROAD_RELAY=0`);
    if (!signal.aborted) await once(signal, "abort");
    return 0;
  },
});
