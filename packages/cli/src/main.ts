#!/usr/bin/env node
// The `cellkit` command.
import { commandGroup, packageVersion, runCommand } from "@cellkit/daemon";
import { bucketServe } from "./commands/bucket-serve.ts";
import { call } from "./commands/call.ts";
import { deploy } from "./commands/deploy.ts";
import { dev } from "./commands/dev.ts";
import { diagnose } from "./commands/diagnose.ts";
import { ledgerAdopt } from "./commands/ledger-adopt.ts";
import { ledgerExport } from "./commands/ledger-export.ts";
import { ledgerImport } from "./commands/ledger-import.ts";
import { ledgerLs } from "./commands/ledger-ls.ts";
import { ledgerShow } from "./commands/ledger-show.ts";
import { ledgerSql } from "./commands/ledger-sql.ts";
import { ledgerVerify } from "./commands/ledger-verify.ts";
import { peerRotate } from "./commands/peer-rotate.ts";
import { qualify } from "./commands/qualify.ts";
import { road } from "./commands/road.ts";
import { rotate } from "./commands/rotate.ts";
import { routerCheck } from "./commands/router-check.ts";
import { routerReconcile } from "./commands/router-reconcile.ts";

await runCommand({
  name: "cellkit",
  version: packageVersion(import.meta.url),
  commands: commandGroup(
    "Run cells: a fleet on this machine, deployments, buckets, calls, what is wrong with a fleet",
    {
      dev,
      deploy,
      call,
      diagnose,
      bucket: commandGroup("Buckets", { serve: bucketServe }),
      ledger: commandGroup("Ledgers", {
        ls: ledgerLs,
        show: ledgerShow,
        verify: ledgerVerify,
        export: ledgerExport,
        import: ledgerImport,
        adopt: ledgerAdopt,
        sql: ledgerSql,
      }),
      router: commandGroup("Routers of executions", { check: routerCheck, reconcile: routerReconcile }),
      rotate,
      qualify,
      road,
      peer: commandGroup("What nodes say to each other", { rotate: peerRotate }),
    },
  ),
});
