// A whole fleet on this machine: an embedded bucket and celld nodes, each a process of its own.

import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Bucket, openBucket } from "@cellkit/bucket";
import { NodeProcess } from "@cellkit/celld";
import { DaemonProcess } from "@cellkit/daemon";
import { bundleProject, type Published, publishDeployment } from "@cellkit/deployment";
import { LocalFleetError } from "./errors.ts";

/** What a local fleet is made of. */
export interface LocalFleetOptions {
  /** Where the bucket and the nodes keep their data; it may exist already, and what it holds is used again. */
  directory: string;
  /** @default 1 */
  nodeCount?: number;
  /** The first node's public port, the others follow. 0 takes free ones. @default 0 */
  port?: number;
  /** Further environment of every node. */
  env?: Readonly<Record<string, string>>;
  /** Hears what is going on, a line at a time. */
  onProgress?: (line: string) => void;
  /** Hears the log lines of every process. */
  onLog?: (process: string, line: string) => void;
}

/** One place of a local fleet: its addresses and data stay, the process in it comes and goes. */
export interface LocalNode {
  readonly name: string;
  readonly publicUrl: string;
  readonly internalUrl: string;
  /** The process that runs here now, or the last one that did. */
  process: NodeProcess;
}

/** A running local fleet. */
export interface LocalFleet extends AsyncDisposable {
  readonly nodes: readonly LocalNode[];
  /** The bucket's address and keys, as environment for `cellkit deploy` and for nodes of one's own. */
  readonly bucketEnvironment: Readonly<Record<string, string>>;
  readonly bucketProcess: DaemonProcess;
  /** Opens the fleet's bucket. */
  openBucket(): Bucket;
  /** Bundles a Wrangler project and makes it the fleet's deployment; running nodes adopt it when they are restarted. */
  deploy(project: string): Promise<Published & { warnings: readonly string[] }>;
  /** Starts a process in a node's place again and waits until it serves. */
  restart(node: LocalNode): Promise<void>;
  /** Drains all nodes, then ends the bucket. */
  close(): Promise<void>;
}

/** How to start `cellkit` on this Node: from its source in the workspace, from its built file elsewhere. */
export function cellkitCommand(): { command: string; args: string[] } {
  const source = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(source ? "./main.ts" : "./main.js", import.meta.url));
  return { command: process.execPath, args: [...(source ? ["--conditions=@cellkit/source"] : []), main] };
}

/**
 * Starts an embedded bucket and `nodeCount` celld nodes on it. Nodes are healthy, and answer 404, until something is deployed.
 * @throws DaemonProcessError when a process does not come up; nothing is left running then
 */
export async function startLocalFleet(options: LocalFleetOptions): Promise<LocalFleet> {
  const progress = options.onProgress ?? (() => {});
  const nodeCount = options.nodeCount ?? 1;
  const credentials = { accessKeyId: "local", secretAccessKey: randomBytes(24).toString("hex") };
  const ports = await freePorts(1 + nodeCount * 2);
  const endpoint = `http://127.0.0.1:${ports[0]}`;
  const bucketUrl = "s3://cells/fleet";
  const bucketEnvironment = {
    CELLD_BUCKET: bucketUrl,
    S3_ENDPOINT: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  const bucketDirectory = join(options.directory, "bucket");
  await mkdir(bucketDirectory, { recursive: true });

  progress(`bucket: ${bucketDirectory} at ${endpoint}`);
  const command = cellkitCommand();
  let listening = false;
  const bucketProcess = new DaemonProcess("cellkit bucket serve", {
    command: command.command,
    args: [
      ...command.args,
      "bucket",
      "serve",
      bucketDirectory,
      "--listen",
      `127.0.0.1:${ports[0]}`,
      "--name",
      "cells",
    ],
    env: { ...process.env, ...bucketEnvironment },
    onLine: (line) => {
      listening = true;
      options.onLog?.("bucket", line);
    },
  });

  const start = (index: number): NodeProcess =>
    new NodeProcess({
      node: `node-${index + 1}`,
      bucket: bucketUrl,
      endpoint,
      credentials,
      listen: `127.0.0.1:${options.port ? options.port + index : ports[1 + index * 2]}`,
      internalListen: `127.0.0.1:${ports[2 + index * 2]}`,
      directory: join(options.directory, `node-${index + 1}`),
      ...(options.env === undefined ? {} : { env: options.env }),
      onLine: (line) => options.onLog?.(`node-${index + 1}`, line),
    });

  const nodes: LocalNode[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(nodes.map(({ process }) => process.drain()));
    await bucketProcess.stop(10_000);
  };
  try {
    await bucketProcess.until("listening", async () => listening, 20_000);
    for (let index = 0; index < nodeCount; index += 1) {
      const process = start(index);
      nodes.push({
        name: process.node,
        publicUrl: process.publicUrl,
        internalUrl: process.internalUrl,
        process,
      });
    }
    await Promise.all(nodes.map(({ process }) => process.ready()));
  } catch (error) {
    await Promise.all(nodes.map(({ process }) => process.kill()));
    await bucketProcess.kill();
    throw error;
  }
  for (const { name, publicUrl } of nodes) progress(`${name}: ${publicUrl}`);

  let closing: Promise<void> | undefined;
  const closeOnce = () => {
    closing ??= close();
    return closing;
  };
  const open = () => openBucket(bucketUrl, { endpoint, region: "us-east-1", credentials });
  return {
    nodes,
    bucketEnvironment,
    bucketProcess,
    openBucket: open,
    async deploy(project) {
      const bundle = await bundleProject(project);
      await using bucket = open();
      return { ...(await publishDeployment(bucket, bundle)), warnings: bundle.warnings };
    },
    async restart(node) {
      const index = nodes.indexOf(node);
      if (index < 0) throw new LocalFleetError(`${node.name} is not a node of this fleet`);
      node.process = start(index);
      await node.process.ready();
    },
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

/** Takes `count` ports that are free on loopback now. Another program may take one before its owner listens: that start fails and says so. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once("error", reject);
          server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            resolve(typeof address === "object" && address !== null ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
