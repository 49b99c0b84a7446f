// `cellkit bucket serve DIR`: an S3 server over a directory, for laptops, tests and single machines.
import { join } from "node:path";
import { loadOrCreateCredentials, serveBucket } from "@cellkit/bucket/server";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { CredentialsError } from "../errors.ts";

const schema = z.strictObject({
  directory: z.string().meta({
    description: "Where objects are kept. It may be open elsewhere as file:// at the same time.",
    placeholder: "DIR",
    positional: true,
  }),
  listen: z
    .string()
    .regex(/^(\[[0-9a-fA-F:.]+\]|[^\s:[\]/]+):\d{1,5}$/, "must be HOST:PORT")
    .default("127.0.0.1:9000")
    .meta({
      description:
        "Where the server listens; port 0 takes a free one. Beyond loopback, put TLS in front of it.",
      env: "CELLKIT_BUCKET_LISTEN",
      placeholder: "HOST:PORT",
      emptyIsUnset: true,
    }),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "must be a bucket name of S3: 3 to 63 of a-z 0-9 . -")
    .default("cells")
    .meta({ description: "The bucket's name.", env: "CELLKIT_BUCKET_NAME", emptyIsUnset: true }),
  accessKeyId: z.string().min(1).max(128).optional().meta({
    description:
      "The key pair's name. Without a pair, one is made in DIR.credentials.json (mode 0600) and used from then on.",
    env: "AWS_ACCESS_KEY_ID",
    emptyIsUnset: true,
  }),
  secretAccessKey: z.string().min(16).max(256).optional().meta({
    description:
      "The key pair's secret. Better given by the environment than by a flag, which others on the machine can read.",
    env: "AWS_SECRET_ACCESS_KEY",
    secret: true,
    emptyIsUnset: true,
  }),
});

/** The command. */
export const bucketServe = defineCommand<typeof schema, CommandContext>({
  summary: "Serve a directory as an S3 bucket",
  description:
    "Serves a directory as an S3 bucket with conditional writes, and prints the environment that celld and `cellkit deploy` need to use it.",
  schema,
  exitCodes: {
    0: "stopped by a signal",
    1: "failure; standard error says why",
    2: "bad flags",
    130: "second signal",
  },
  examples: [
    {
      command: "cellkit bucket serve ./data",
      description: "A bucket for this machine, with a key pair of its own",
    },
  ],
  async run(config, { defer, note, print, signal }) {
    const { accessKeyId, secretAccessKey } = config;
    if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) throw new CredentialsError();
    const file = `${join(config.directory)}.credentials.json`;
    const made =
      accessKeyId === undefined || secretAccessKey === undefined
        ? await loadOrCreateCredentials(file)
        : undefined;
    const credentials = made ?? { accessKeyId: accessKeyId ?? "", secretAccessKey: secretAccessKey ?? "" };
    const at = config.listen.lastIndexOf(":");
    const server = await serveBucket({
      directory: config.directory,
      bucketName: config.name,
      host: config.listen.slice(0, at).replace(/^\[(.*)\]$/, "$1"),
      port: Number(config.listen.slice(at + 1)),
      credentials,
    });
    defer("the bucket server", () => server.close());
    if (made?.created === true) note(`a new key pair is in ${file}`);
    print(`export CELLD_BUCKET=s3://${server.bucketName}`);
    print(`export S3_ENDPOINT=${server.endpoint}`);
    print("export AWS_REGION=us-east-1");
    print(`export AWS_ACCESS_KEY_ID=${credentials.accessKeyId}`);
    if (made === undefined) note("AWS_SECRET_ACCESS_KEY: as it was given to this command");
    else print(`export AWS_SECRET_ACCESS_KEY=${credentials.secretAccessKey}`);
    note(`serving ${config.directory}; stop with Ctrl-C`);
    await aborted(signal);
    return 0;
  },
});

/** Resolves when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
