// For every daemon that has an image, the smallest real thing that it can serve: what it is started with, and what it then answers.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { openBucket } from "../packages/bucket/src/index.ts";
import { serveBucket } from "../packages/bucket/src/server/index.ts";
import { bundleProject, publishDeployment } from "../packages/deployment/src/index.ts";
import { TestCa } from "../packages/edge/test/support/certificates.ts";
import { root } from "./workspace.ts";

/** One daemon's trial. Listeners are at 127.0.0.1, ports 0. */
export interface Trial {
  args: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** The field of its log line `ready` that says where it listens. */
  listener: string;
  /** What is asked there; `ca` makes it a call over TLS. */
  ask: { path: string; headers?: Readonly<Record<string, string>>; ca?: string };
  /** What it must answer. */
  answer: { status: number; body: RegExp };
  close?: () => Promise<void>;
}

/** Prepares a trial in a directory of its own; by the daemon's folder name. */
export const trials: Readonly<Record<string, (directory: string) => Promise<Trial>>> = {
  /** A read of an execution that nobody submitted: the token was right and the ledger was asked. */
  async router(directory) {
    const token = (role: string) => `${role}-token-of-a-packed-router`;
    const flags = [
      ["--client-token-file", "client"],
      ["--token-file", "backend"],
    ].flatMap(([flag = "", role = ""]) => {
      const file = join(directory, role);
      writeFileSync(file, token(role), { mode: 0o600 });
      return [flag, file];
    });
    return {
      args: [
        "--backends=http://127.0.0.1:9",
        `--ledger=${join(directory, "ledger")}`,
        "--listen=127.0.0.1:0",
        ...flags,
      ],
      listener: "listen",
      ask: { path: "/v1/executions/of-nobody", headers: { authorization: `Bearer ${token("client")}` } },
      answer: { status: 404, body: /./ },
    };
  },

  /** What its backend says, through TLS. */
  async edge(directory) {
    const ca = new TestCa();
    const pair = ca.issue();
    const [cert, key] = [join(directory, "tls.crt"), join(directory, "tls.key")];
    writeFileSync(cert, pair.cert);
    writeFileSync(key, pair.key, { mode: 0o600 });
    const backend = createServer((_, response) => response.end("from behind the edge"));
    await new Promise<void>((listening) => backend.listen(0, "127.0.0.1", listening));
    const origin = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
    return {
      args: [
        "--execution-router",
        `--backend=${origin}`,
        `--tls-cert=${cert}`,
        `--tls-key=${key}`,
        "--listen=127.0.0.1:0",
      ],
      listener: "listen",
      ask: { path: "/v1/capabilities", ca: ca.cert },
      answer: { status: 200, body: /^from behind the edge$/ },
      close: () => new Promise((closed) => backend.close(() => closed())),
    };
  },

  /** What a cell of the chat example says, so workerd runs. */
  async celld(directory) {
    const credentials = { accessKeyId: "packed", secretAccessKey: "only-for-this-trial" };
    const store = await serveBucket({ directory: join(directory, "bucket"), credentials });
    const url = `s3://${store.bucketName}/fleet`;
    const bucket = openBucket(url, { endpoint: store.endpoint, credentials });
    await publishDeployment(bucket, await bundleProject(join(root, "examples/chat")));
    return {
      args: [`--watch=${join(directory, "node")}`, "--listen=127.0.0.1:0", "--internal-listen=127.0.0.1:0"],
      env: {
        CELLD_BUCKET: url,
        S3_ENDPOINT: store.endpoint,
        AWS_REGION: "us-east-1",
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      },
      listener: "public",
      ask: { path: "/rooms/lobby/count" },
      answer: { status: 200, body: /./ },
      close: () => store.close(),
    };
  },
};
