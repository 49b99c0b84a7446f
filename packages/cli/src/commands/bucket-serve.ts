// `cellkit bucket serve DIR`: an S3 server over a directory, for laptops, tests and single machines.
import { once } from "node:events";
import { resolve } from "node:path";
import { addressOption, type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { shellWord } from "../shell-word.ts";

/** The command's options. */
export const bucketServeOptions = z
  .strictObject({
    directory: z.string().meta({
      description: "Where objects are kept; made if absent. It may be open as file:// at the same time.",
      placeholder: "DIR",
      positional: true,
    }),
    listen: addressOption().prefault("127.0.0.1:9000").meta({
      description:
        "Where the server listens; port 0 takes a free one. It speaks plain HTTP: beyond loopback, put TLS in front of it.",
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
    secretAccessKey: z.string().min(8).max(256).optional().meta({
      description:
        "The key pair's secret, 8 to 256 characters. Better given by the environment than by a flag, which others on the machine can read.",
      env: "AWS_SECRET_ACCESS_KEY",
      secret: true,
      emptyIsUnset: true,
    }),
  })
  .superRefine(({ accessKeyId, secretAccessKey }, context) => {
    if ((accessKeyId === undefined) === (secretAccessKey === undefined)) return;
    context.addIssue({
      code: "custom",
      path: [accessKeyId === undefined ? "accessKeyId" : "secretAccessKey"],
      message:
        "is the missing half of the key pair: give both, or neither to have a pair made (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
    });
  });

/** The command. */
export const bucketServe = defineCommand<typeof bucketServeOptions, CommandContext>({
  description:
    "Serves a directory as an S3 bucket with conditional writes, until a signal ends it. Prints the environment by which `cellkit deploy` and `cellkit-celld` find it, for a shell to read; a secret that was given to it is not printed.",
  schema: bucketServeOptions,
  exitCodes: {
    0: "stopped by a signal",
    1: "failure: the port is taken, the directory cannot be used; standard error says why",
    2: "bad flags or environment",
    130: "a second signal ended it at once",
  },
  examples: [
    {
      command: "cellkit bucket serve ./data > bucket.env",
      description: "A bucket for this machine with a key pair of its own; `. ./bucket.env` in another shell",
    },
    {
      command: "cellkit bucket serve ./data --listen 127.0.0.1:0 --name fleet",
      description: "On a free port, under another name",
    },
  ],
  async run({ directory, listen, name, accessKeyId, secretAccessKey }, { defer, note, print, signal }) {
    const { loadOrCreateCredentials, serveBucket } = await import("@cellkit/bucket/server");
    const file = `${resolve(directory)}.credentials.json`;
    const given =
      accessKeyId === undefined || secretAccessKey === undefined
        ? undefined
        : { accessKeyId, secretAccessKey };
    const credentials = given ?? (await loadOrCreateCredentials(file));
    const server = await serveBucket({
      directory,
      bucketName: name,
      ...listen,
      credentials,
      onFailure: (error) => note(`a request failed: ${error.message}`),
    });
    defer("the bucket server", () => server.close());
    const keys = given === undefined ? `key pair in ${file}` : "key pair as given";
    note(`serving ${resolve(directory)} at ${server.endpoint}, ${keys}; stop with Ctrl-C`);
    const variables = [
      `CELLD_BUCKET=s3://${server.bucketName}`,
      `S3_ENDPOINT=${server.endpoint}`,
      `AWS_REGION=${server.region}`,
      `AWS_ACCESS_KEY_ID=${shellWord(credentials.accessKeyId)}`,
      ...(given === undefined ? [`AWS_SECRET_ACCESS_KEY=${shellWord(credentials.secretAccessKey)}`] : []),
    ];
    // At once: who waits for one of them in a file finds all of them.
    print(variables.map((variable) => `export ${variable}`).join("\n"));
    if (!signal.aborted) await once(signal, "abort");
    return 0;
  },
});
