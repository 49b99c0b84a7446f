// `cellkit qualify …`: whether a store keeps what is built on it.
import { type CommandContext, type CommandGroup, commandGroup } from "@cellkit/daemon";
import { qualifyBucketCommand } from "./qualify-bucket.ts";

/** The commands under the word. */
export const qualify: CommandGroup<CommandContext> = commandGroup("Whether a store may be trusted", {
  bucket: qualifyBucketCommand,
});
