// `cellkit qualify …`: whether a store, or a plane of executions, keeps what is built on it.
import { type CommandContext, type CommandGroup, commandGroup } from "@cellkit/daemon";
import { qualifyBucketCommand } from "./qualify-bucket.ts";
import { qualifyExecutionsCommand } from "./qualify-executions.ts";
import { qualifyLedgerCommand } from "./qualify-ledger.ts";

/** The commands under the word. */
export const qualify: CommandGroup<CommandContext> = commandGroup(
  "Whether a store or a plane may be trusted",
  {
    bucket: qualifyBucketCommand,
    ledger: qualifyLedgerCommand,
    executions: qualifyExecutionsCommand,
  },
);
