// The bucket of a local fleet: `cellkit bucket serve`, a process of its own, so that no node carries it.
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { DaemonProcess } from "@cellkit/daemon";
import { ProcessStartError } from "./errors.ts";
import { reasonOf } from "./node-log.ts";

const name = "cells";
const prefix = "fleet";
const region = "us-east-1";
const startBoundMs = 30_000;
const stopBoundMs = 10_000;

/** A bucket that runs, and how it is reached. */
export interface BucketProcess {
  readonly process: DaemonProcess;
  /** `s3://…` */
  readonly url: string;
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string };
  /** All of that as the environment of other processes. */
  readonly environment: Readonly<Record<string, string>>;
  /** SIGTERM, and SIGKILL after 10 s. */
  stop(): Promise<void>;
}

/** How to start `cellkit` on this Node: from its source in the workspace, from its built file elsewhere. */
export function cellkitCommand(): { command: string; args: string[] } {
  const source = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(source ? "./main.ts" : "./main.js", import.meta.url));
  return { command: process.execPath, args: [...(source ? ["--conditions=@cellkit/source"] : []), main] };
}

/**
 * Serves a directory on a free port of loopback, under a key pair that lives as long as the process.
 * @param onLog hears what it says about its work, not what it prints while it starts
 * @throws ProcessStartError (`CELLKIT_CLI_PROCESS_START`); the process is gone then
 */
export async function startBucketProcess(
  directory: string,
  env: NodeJS.ProcessEnv,
  onLog: (line: string) => void,
): Promise<BucketProcess> {
  const credentials = { accessKeyId: "local", secretAccessKey: randomBytes(24).toString("hex") };
  const { command, args } = cellkitCommand();
  let endpoint = "";
  let started = false;
  const child = new DaemonProcess("cellkit bucket serve", {
    command,
    args: [...args, "bucket", "serve", directory, "--listen", "127.0.0.1:0", "--name", name],
    env: {
      ...env,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
    onLine: (line, stream) => {
      if (started && stream === "stderr") onLog(line);
      if (stream === "stdout") endpoint ||= /^export S3_ENDPOINT=(\S+)$/.exec(line)?.[1] ?? "";
    },
  });
  try {
    await child.until("listening", async () => endpoint !== "", startBoundMs);
  } catch (cause) {
    await child.kill();
    throw new ProcessStartError("bucket", reasonOf(child.lastLines), { cause });
  }
  started = true;
  const url = `s3://${name}/${prefix}`;
  return {
    process: child,
    url,
    endpoint,
    region,
    credentials,
    environment: {
      CELLD_BUCKET: url,
      S3_ENDPOINT: endpoint,
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
    stop: async () => void (await child.stop(stopBoundMs)),
  };
}
