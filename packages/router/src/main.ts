#!/usr/bin/env node
// `cellkit-router`: executions to dispatchers.
import { packageVersion, runDaemon } from "@cellkit/daemon";
import { routerOptions } from "./config.ts";
import { startRouter } from "./wiring.ts";

const version = packageVersion(import.meta.url);

await runDaemon({
  name: "cellkit-router",
  logName: "router",
  version,
  description:
    "Gives every execution one dispatcher, for ever: it writes the owner of an id into a ledger that all replicas share before it forwards the one submission. SIGTERM lets requests end; a submission that is cut off is answered that its outcome is unknown.",
  schema: routerOptions,
  envPrefix: "CELLKIT_ROUTER_",
  helpWhenBare: true,
  logFields: ({ replica }) => ({ replica }),
  examples: [
    {
      command:
        "cellkit-router --backends http://dispatcher-a:8787,http://dispatcher-b:8787 --token-file /etc/celln/backend/token --client-token-file /etc/celln/client/token --capability-token-file /etc/celln/capability/token --ownership-dir /var/lib/celln/ownership",
      description: "A replica with its ledger on a shared file system, as the original is started",
    },
    {
      command:
        "cellkit-router --backends-srv dispatchers.celln.svc --token-file b --client-token-file c --ledger s3://plane/ledger --require-existing-ledger",
      description: "Dispatchers by name, the ledger in a bucket that must be there",
    },
  ],
  start: (context) => startRouter(context, version),
});
