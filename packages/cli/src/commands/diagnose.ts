// `cellkit diagnose`: what is wrong with each node of a fleet, or with one.
import { isIP } from "node:net";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { bucketOptions } from "../bucket-options.ts";

/** The command's options. */
export const diagnoseOptions = z
  .strictObject({
    ...bucketOptions,
    bucket: bucketOptions.bucket.optional().meta({
      description: "The fleet's bucket: it says which nodes there are, and has their key.",
      env: "CELLD_BUCKET",
      placeholder: "URL",
      section: "Bucket",
      emptyIsUnset: true,
    }),
    peer: z
      .array(
        z.string().regex(/^[^\s/?#]{1,261}$/, "must be HOST:PORT of an internal listener, or a node's name"),
      )
      .max(100)
      .default([])
      .meta({
        description:
          "Only this node: HOST:PORT of its internal listener or, with a bucket, its name. May be given several times.",
        placeholder: "HOST:PORT",
        defaultText: "every node of the bucket",
      }),
    keyFile: z.string().optional().meta({
      description:
        "A file with the fleet's key (the object fleet/peer-auth.json, or its 64 hex digits), in place of the bucket's. With neither, keys and identities are not checked.",
      placeholder: "FILE",
    }),
    protocol: z.literal(["2", "5"]).optional().meta({
      description: "The generation of the protocol that nodes should speak.",
      defaultText: "what most nodes of the bucket say",
    }),
    json: z.boolean().default(false).meta({
      description:
        "Print the findings as one JSON object: nodes, unreadable, olderCount, truncated, rotation.",
    }),
  })
  .superRefine(({ bucket, peer }, context) => {
    for (const each of peer)
      if (isIP(each.replace(/^\[(.*)\]$/, "$1")) !== 0)
        context.addIssue({
          code: "custom",
          path: ["peer"],
          message: `${JSON.stringify(each)} has no port: give HOST:PORT of the internal listener`,
        });
    if (bucket === undefined && peer.length === 0)
      context.addIssue({ code: "custom", path: ["bucket"], message: "is needed, or --peer HOST:PORT" });
    if (bucket !== undefined) return;
    for (const each of peer)
      if (!/:\d{1,5}$/.test(each))
        context.addIssue({
          code: "custom",
          path: ["peer"],
          message: `must be HOST:PORT without --bucket, and ${JSON.stringify(each)} is none`,
        });
  });

/** The command. */
export const diagnose = defineCommand<typeof diagnoseOptions, CommandContext>({
  description:
    "Asks each node of a fleet for a signed proof of who it is, and tells what stands in the way: unreachable, not-a-node, wrong-node, wrong-key, clock-skew, wrong-version, not-ready; draining and gone are no trouble. Changes nothing.",
  schema: diagnoseOptions,
  exitCodes: {
    0: "at least one node is ready, and the others are ready, draining or gone",
    1: "failure: the bucket cannot be read, or has no fleet's key; standard error says why",
    2: "bad flags or environment, a key file that is none",
    3: "trouble: a node in another state, a record that cannot be read, or no node that is ready",
    130: "ended by a signal",
  },
  examples: [
    { command: "cellkit diagnose --bucket s3://cells/fleet", description: "All nodes of a fleet" },
    {
      command: "cellkit diagnose --peer 10.0.0.12:8081 --key-file peer-auth.json",
      description: "One node, without a bucket",
    },
    {
      command:
        'cellkit diagnose --json | jq -r \'.nodes[] | select(.verdict | IN("ready", "draining", "gone") | not).node\'',
      description: "The names of those that are in trouble",
    },
  ],
  async run(config, { defer, note, print, signal }) {
    const { diagnoseFleet, diagnosePeers, diagnosisRows, isOwnClockSuspect, isTrouble } = await import(
      "../fleet-diagnosis.ts"
    );
    const { readKeyFile } = await import("../peer-options.ts");
    const { table } = await import("../table.ts");
    const { bucket: url, endpoint, region, keyFile } = config;
    const key = keyFile === undefined ? undefined : await readKeyFile(keyFile);
    const protocols = { 2: 2, 5: 5 } as const;
    const protocol = config.protocol === undefined ? undefined : protocols[config.protocol];
    const options = { peers: config.peer, key, protocol, signal };
    let found: Awaited<ReturnType<typeof diagnosePeers>>;
    if (url === undefined) found = await diagnosePeers(options);
    else {
      const { openBucket } = await import("@cellkit/bucket");
      const bucket = openBucket(url, { region, endpoint });
      defer("the bucket", () => bucket.close());
      found = await diagnoseFleet(bucket, options);
    }
    if (config.json) print(JSON.stringify(found));
    else for (const line of table(diagnosisRows(found))) print(line);
    if (found.nodes.length === 0) note("no node: none has a record in this bucket");
    if (isOwnClockSuspect(found))
      note("all nodes agree with each other on the time: it is this machine's clock that seems to be off");
    if (found.olderCount > 0)
      note(`${found.olderCount} records of nodes that stopped long ago were left out`);
    if (found.truncated) note("there are more records than were read: remove the old ones");
    if (found.rotation !== undefined && found.rotation !== "none")
      note(`the fleet key is being rotated (${found.rotation}): cellkit peer rotate goes on with it`);
    return isTrouble(found) ? 3 : 0;
  },
});
