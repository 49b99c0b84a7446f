// `cellkit ledger ls URL`: what lies in a ledger.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { ageOf } from "../age.ts";
import { ledgerPlaceOptions, ledgerUrl, readPlace } from "../ledger-options.ts";
import { jsonLine, printable } from "../printable.ts";

/** The command's options. */
export const ledgerLsOptions = z.strictObject({
  url: ledgerUrl,
  limit: z.number().int().min(0).default(1_000).meta({
    description: "How many entries to show at most; 0 for all. They come in no order.",
  }),
  json: z.boolean().default(false).meta({
    description:
      "Print a JSON object a line: key, backend, bodyHash, modifiedMs, marked, and problem where an entry cannot be read.",
  }),
  ...ledgerPlaceOptions,
});

/** The command. */
export const ledgerLs = defineCommand<typeof ledgerLsOptions, CommandContext>({
  description:
    "Lists the records of a ledger: the hash of each id (the ids themselves are stored nowhere), how old, and who owns it. Takes no lock and writes nothing; a copy and a read-only mount will do, and so will a directory of the original router.",
  schema: ledgerLsOptions,
  exitCodes: {
    0: "done",
    1: "failure: no ledger there, or it cannot be read; standard error says why",
    2: "bad flags or environment",
    130: "ended by a signal",
  },
  examples: [
    { command: "cellkit ledger ls /var/lib/router/ownership", description: "The first 1,000" },
    {
      command: "cellkit ledger ls s3://cells/router --limit 0 --json | jq -r .backend | sort | uniq -c",
      description: "How many each owner has",
    },
  ],
  async run(config, { defer, note, print, signal }) {
    const ledger = await readPlace(config);
    defer("the ledger", () => ledger.close());
    const nowMs = Date.now();
    let count = 0;
    // Whoever reads may have seen enough, as `head` has.
    let isRead = true;
    process.stdout.on("error", () => {
      isRead = false;
    });
    if (!config.json) print(`${"KEY".padEnd(64)}  AGE     OWNER`);
    // The signal is looked at here: it also comes when nobody reads any more, which is no failure of this command.
    for await (const entry of ledger.entries()) {
      if (!isRead) break;
      signal.throwIfAborted();
      if (config.limit > 0 && count === config.limit) {
        note(`there are more than ${config.limit}: --limit 0 shows all`);
        break;
      }
      count += 1;
      const { key, owner, problem, modifiedMs, marked } = entry;
      if (config.json) print(jsonLine({ key, ...owner, modifiedMs, marked, problem }));
      else
        print(
          `${printable(key).padEnd(64)}  ${ageOf(modifiedMs, nowMs).padEnd(6)}  ${printable(owner?.backend ?? `(${problem ?? "not readable"})`)}${marked ? "  marked" : ""}`,
        );
    }
    return 0;
  },
});
