#!/usr/bin/env node
// `cellkit-edge`: TLS in front of a router or dispatcher of this machine.
import { packageVersion, runDaemon } from "@cellkit/daemon";
import { edgeOptions } from "./config.ts";
import { startEdge } from "./wiring.ts";

const version = packageVersion(import.meta.url);

await runDaemon({
  name: "cellkit-edge",
  logName: "edge",
  version,
  description:
    "TLS 1.3 and a list of routes in front of a router or dispatcher that listens on loopback only. It adds no authority: the backend checks every token. SIGTERM lets running requests end, for up to 20 s.",
  schema: edgeOptions,
  envPrefix: "CELLKIT_EDGE_",
  helpWhenBare: true,
  examples: [
    {
      command:
        "cellkit-edge --execution-router --backend http://127.0.0.1:8787 --listen 10.0.0.7:9444 --tls-cert /etc/edge/tls.crt --tls-key /etc/edge/tls.key",
      description: "Executions, in front of the router of this machine",
    },
    {
      command:
        "cellkit-edge --check --backend http://127.0.0.1:8788 --tls-cert /etc/edge/tls.crt --tls-key /etc/edge/tls.key",
      description: "Parents: is everything there that this edge needs?",
    },
  ],
  start: (context) => startEdge(context, version),
});
