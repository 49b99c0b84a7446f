// `cellkit qualify …`: whether a store keeps what is built on it.
import { type CommandContext, type CommandGroup, commandGroup } from "@cellkit/daemon";
import { qualifyBucketCommand } from "./qualify-bucket.ts";
import { qualifyLedgerCommand } from "./qualify-ledger.ts";

/** The commands under the word. */
export const qualify: CommandGroup<CommandContext> = commandGroup("Whether a store may be trusted", {
  bucket: qualifyBucketCommand,
  ledger: qualifyLedgerCommand,
});
