// `cellkit deploy DIR --bucket URL`: bundles a Wrangler project and makes it the fleet's deployment.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { bundleProject, publishDeployment } from "@cellkit/deployment";
import { z } from "zod";
import { bucketOptions, openBucketOf } from "../bucket-options.ts";

const schema = z.strictObject({
  project: z.string().default(".").meta({
    description: "The project's directory, with wrangler.jsonc or wrangler.json.",
    placeholder: "DIR",
    positional: true,
  }),
  ...bucketOptions,
  replaceScript: z.boolean().default(false).meta({
    description:
      "Deploy though the fleet runs a script of another name. Its cells stay in the bucket, out of the new script's reach.",
  }),
  json: z.boolean().default(false).meta({ description: "Print the result as one JSON object." }),
});

/** The command. */
export const deploy = defineCommand<typeof schema, CommandContext>({
  summary: "Bundle a Wrangler project and make it the fleet's deployment",
  description:
    "Bundles a Wrangler project and makes it the fleet's deployment. Nodes that run nothing yet start it within seconds; others adopt it when they are restarted.",
  schema,
  exitCodes: { 0: "deployed, or there already", 1: "failure; standard error says why", 2: "bad flags" },
  examples: [
    {
      command: "cellkit deploy examples/chat --bucket s3://cells/fleet",
      description: "Deploy to a bucket of AWS",
    },
  ],
  async run(config, { note, print, signal }) {
    const bundle = await bundleProject(config.project);
    for (const warning of bundle.warnings) note(`warning: ${warning}`);
    await using bucket = openBucketOf(config);
    const published = await publishDeployment(bucket, bundle, {
      replaceScript: config.replaceScript,
      signal,
    });
    const { scriptName, version, created } = published;
    if (config.json) print(JSON.stringify(published));
    else if (created)
      print(`deployed ${scriptName} ${version} to ${config.bucket}; restart the nodes to adopt it`);
    else print(`${scriptName} ${version} is what ${config.bucket} has already`);
    return 0;
  },
});
