// The bucket of a local fleet: `cellkit bucket serve`, a process of its own, so that no node carries it.
import { randomBytes } from "node:crypto";
import { type SiblingProcess, startSibling } from "./sibling-process.ts";

const name = "cells";
const prefix = "fleet";
const region = "us-east-1";

/** A bucket that runs, and how it is reached. */
export interface BucketProcess extends Pick<SiblingProcess, "process" | "stop"> {
  /** `s3://…` */
  readonly url: string;
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string };
  /** All of that as the environment of other processes. */
  readonly environment: Readonly<Record<string, string>>;
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
  const keys = {
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  const { process, value, stop } = await startSibling({
    command: ["bucket", "serve"],
    args: [directory, "--listen", "127.0.0.1:0", "--name", name],
    env: { ...env, ...keys },
    variable: "S3_ENDPOINT",
    onLog,
  });
  const url = `s3://${name}/${prefix}`;
  return {
    process,
    url,
    endpoint: value,
    region,
    credentials,
    environment: { CELLD_BUCKET: url, S3_ENDPOINT: value, AWS_REGION: region, ...keys },
    stop,
  };
}
