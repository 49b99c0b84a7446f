// The list of commands: their words, one line for each, and where it is. Commands are loaded when they are named.
import { type CommandContext, type CommandGroup, commandGroup, listedCommand } from "@cellkit/daemon";

/** All that `cellkit` can do. */
export const commands: CommandGroup<CommandContext> = commandGroup(
  "Run cells: a fleet on this machine, deployments, buckets, calls, what is wrong with a fleet",
  {
    dev: listedCommand(
      "Run a project on a fleet of this machine",
      async () => (await import("./commands/dev.ts")).dev,
    ),
    deploy: listedCommand(
      "Bundle a Wrangler project and make it the fleet's deployment",
      async () => (await import("./commands/deploy.ts")).deploy,
    ),
    call: listedCommand(
      "Call a cell through any node of the fleet",
      async () => (await import("./commands/call.ts")).call,
    ),
    diagnose: listedCommand(
      "Tell what is wrong with the nodes of a fleet",
      async () => (await import("./commands/diagnose.ts")).diagnose,
    ),
    bucket: commandGroup("Buckets", {
      serve: listedCommand(
        "Serve a directory as an S3 bucket",
        async () => (await import("./commands/bucket-serve.ts")).bucketServe,
      ),
    }),
    ledger: commandGroup("Ledgers", {
      ls: listedCommand(
        "List what lies in a ledger",
        async () => (await import("./commands/ledger-ls.ts")).ledgerLs,
      ),
      show: listedCommand(
        "Show whom an id belongs to",
        async () => (await import("./commands/ledger-show.ts")).ledgerShow,
      ),
      verify: listedCommand(
        "Look for corrupt and foreign records in a ledger",
        async () => (await import("./commands/ledger-verify.ts")).ledgerVerify,
      ),
      export: listedCommand(
        "Write all bindings of a ledger to a file",
        async () => (await import("./commands/ledger-export.ts")).ledgerExport,
      ),
      import: listedCommand(
        "Write the bindings of an export into a ledger",
        async () => (await import("./commands/ledger-import.ts")).ledgerImport,
      ),
      adopt: listedCommand(
        "Mark a directory of the original router as a ledger",
        async () => (await import("./commands/ledger-adopt.ts")).ledgerAdopt,
      ),
      sql: listedCommand(
        "Print the SQL that makes a ledger's table",
        async () => (await import("./commands/ledger-sql.ts")).ledgerSql,
      ),
    }),
    router: commandGroup("Routers of executions", {
      check: listedCommand(
        "Check a router's configuration, tokens, ledger and backends without starting it",
        async () => (await import("./commands/router-check.ts")).routerCheck,
      ),
      reconcile: listedCommand(
        "Report where runs are, against their original owners",
        async () => (await import("./commands/router-reconcile.ts")).routerReconcile,
      ),
    }),
    rotate: listedCommand(
      "Replace the tokens of routers, dispatchers and callers, in their order",
      async () => (await import("./commands/rotate.ts")).rotate,
    ),
    qualify: commandGroup("Whether a store or a plane may be trusted", {
      bucket: listedCommand(
        "Find out whether a bucket keeps its conditions when many write at once",
        async () => (await import("./commands/qualify-bucket.ts")).qualifyBucketCommand,
      ),
      ledger: listedCommand(
        "Find out whether a place keeps what a ledger promises",
        async () => (await import("./commands/qualify-ledger.ts")).qualifyLedgerCommand,
      ),
      executions: listedCommand(
        "Try the acceptance list of an execution plane, and write evidence",
        async () => (await import("./commands/qualify-executions.ts")).qualifyExecutionsCommand,
      ),
    }),
    road: listedCommand(
      "Relay between nodes that share a machine with others",
      async () => (await import("./commands/road.ts")).road,
    ),
    peer: commandGroup("What nodes say to each other", {
      rotate: listedCommand(
        "Replace the fleet's key while the fleet serves",
        async () => (await import("./commands/peer-rotate.ts")).peerRotate,
      ),
    }),
  },
);
