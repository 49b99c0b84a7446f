#!/usr/bin/env node
// The `cellkit` command.
import { commandGroup, packageVersion, runCommand } from "@cellkit/daemon";
import { bucketServe } from "./commands/bucket-serve.ts";
import { deploy } from "./commands/deploy.ts";
import { dev } from "./commands/dev.ts";

await runCommand({
  name: "cellkit",
  version: packageVersion(import.meta.url),
  commands: commandGroup("Run cells: a fleet on this machine, deployments, buckets", {
    dev,
    deploy,
    bucket: commandGroup("Buckets", { serve: bucketServe }),
  }),
});
