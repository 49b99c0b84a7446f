// `cellkit deploy DIR --bucket URL`: bundles a Wrangler project and makes it the fleet's deployment.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { bucketOptions } from "../bucket-options.ts";

/** The command's options. */
export const deployOptions = z.strictObject({
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
  json: z.boolean().default(false).meta({
    description: "Print the result as one JSON object: scriptName, version, created.",
  }),
});

/** The command. */
export const deploy = defineCommand<typeof deployOptions, CommandContext>({
  description:
    "Bundles a Wrangler project and makes it the fleet's deployment. Nodes that run nothing yet start it within seconds; others adopt it when they are restarted. Doing it twice changes nothing.",
  schema: deployOptions,
  exitCodes: {
    0: "deployed, or there already",
    1: "failure: the Worker does not compile, the bucket refused; standard error says why",
    2: "bad flags or environment, no Wrangler project, or a configuration that does not fit",
    130: "ended by a signal; deploying again finishes it",
  },
  examples: [
    {
      command: "cellkit deploy examples/chat --bucket s3://cells/fleet",
      description: "To a bucket of AWS",
    },
    {
      command: "cellkit deploy examples/chat --bucket s3://cells --endpoint http://127.0.0.1:9000",
      description: "To the bucket of `cellkit bucket serve`, with its key pair in the environment",
    },
  ],
  async run(config, { defer, note, print, signal }) {
    const { openBucket } = await import("@cellkit/bucket");
    const { publishDeployment } = await import("@cellkit/deployment");
    const { readProject } = await import("../project.ts");
    note(`bundling ${config.project}`);
    const bundle = await readProject(config.project, signal);
    for (const warning of bundle.warnings) note(`warning: ${warning}`);
    const bytes = bundle.modules.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    const { length } = bundle.modules;
    note(
      `writing ${length} ${length === 1 ? "module" : "modules"}, ${Math.ceil(bytes / 1000)} kB, to ${config.bucket}`,
    );
    const { endpoint, region } = config;
    const bucket = openBucket(config.bucket, { region, endpoint });
    defer("the bucket", () => bucket.close());
    const published = await publishDeployment(bucket, bundle, {
      replaceScript: config.replaceScript,
      signal,
    });
    const { scriptName, version, created } = published;
    if (config.json) print(JSON.stringify(published));
    else print(`${scriptName} ${version}${created ? "" : " (unchanged)"}`);
    if (created) note("nodes that run something already adopt it when they are restarted");
    return 0;
  },
});
