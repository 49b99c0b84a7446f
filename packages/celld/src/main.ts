#!/usr/bin/env node
// `cellkit-celld`: one node of a fleet.
import { exitCodeMeanings, packageVersion, runDaemon } from "@cellkit/daemon";
import { celldOptions } from "./config.ts";
import { otherVariables } from "./environment.ts";
import { startNode } from "./wiring.ts";

const version = packageVersion(import.meta.url);

await runDaemon({
  name: "cellkit-celld",
  logName: "celld",
  version,
  description:
    "One node of a fleet of cells. It serves the deployed Worker on its public listener, and peers and the operator on its internal one. SIGTERM drains it: new requests get 503 and a closed connection, its cells go to peers, and it ends.",
  schema: celldOptions,
  envPrefix: "CELLD_",
  otherVariables,
  exitCodes: exitCodeMeanings,
  helpWhenBare: true,
  examples: [
    {
      command:
        "cellkit-celld --bucket s3://cells/fleet --listen 0.0.0.0:8080 --internal-listen 0.0.0.0:8081 --advertise 10.0.0.7:8081",
      description: "A node on AWS, with credentials from the environment",
    },
    {
      command: "cellkit-celld --bucket s3://cells --endpoint http://127.0.0.1:9000",
      description: "A node of this machine on the bucket of `cellkit bucket serve`",
    },
  ],
  start: (context) => startNode(context, version),
});
