// What `cellkit qualify ledger` is made of: the command line of its agents, and their secret.
import { readSecretFile, storeOptions } from "@cellkit/daemon";
import type { AgentCommand } from "@cellkit/ledger";
import { cellkitCommand } from "./sibling-process.ts";

/** A secret is some 64 characters. */
const maxSecretBytes = 4_096;

/** `--endpoint` and `--region`. */
export const storeFlags = storeOptions("Bucket");

/** How another process of this qualification is started. */
export function ledgerAgentCommand(place: {
  url: string;
  endpoint?: string | undefined;
  region: string;
}): AgentCommand {
  const { command, args } = cellkitCommand();
  const store = [
    ...(place.endpoint === undefined ? [] : ["--endpoint", place.endpoint]),
    "--region",
    place.region,
  ];
  return { command, args: [...args, "qualify", "ledger", "--agent", ...store, "--", place.url] };
}

/** @throws SecretFileError (`CELLKIT_DAEMON_SECRET_FILE`) */
export function readAgentSecret(path: string): Promise<string> {
  return readSecretFile(path, { maxBytes: maxSecretBytes, ownerOnly: true });
}
