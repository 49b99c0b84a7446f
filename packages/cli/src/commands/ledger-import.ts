// `cellkit ledger import URL FILE`: bindings of another ledger.
import { createReadStream } from "node:fs";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { ledgerPlaceOptions, ledgerUrl, openPlace } from "../ledger-options.ts";

/** The command's options. */
export const ledgerImportOptions = z.strictObject({
  url: ledgerUrl,
  file: z.string().min(1).meta({
    description: "What `cellkit ledger export` wrote.",
    placeholder: "FILE",
    positional: true,
  }),
  dryRun: z.boolean().default(false).meta({
    description: "Only tell what would be added and what stands in the way. Makes no ledger.",
  }),
  capacity: z.number().int().min(1).optional().meta({
    description: "How many records the ledger may hold.",
    defaultText: "100000 in a directory, no limit elsewhere",
  }),
  requireExisting: z.boolean().default(false).meta({
    description: "Refuse where no ledger has been created yet.",
  }),
  json: z.boolean().default(false).meta({
    description:
      "Print the result as one JSON object: recordCount, addedCount, presentCount, conflictCount, fullCount, conflicts (1,000 keys at most).",
  }),
  ...ledgerPlaceOptions,
});

/** The command. */
export const ledgerImport = defineCommand<typeof ledgerImportOptions, CommandContext>({
  summary: "Write the bindings of an export into a ledger",
  description:
    "Writes the bindings of an export into a ledger of any kind, durably, and never over one that is there. The file is checked whole before anything is written. When it breaks off, the same command goes on from there. A record's age and its mark for a sweep are not taken along: both begin anew.",
  schema: ledgerImportOptions,
  exitCodes: {
    0: "every binding of the file is in the ledger",
    1: "some are not: a conflict, or the ledger is full; or a failure, which standard error explains",
    2: "bad flags or environment",
    130: "ended by a signal; the same command goes on",
  },
  examples: [
    {
      command: "cellkit ledger import postgres://router@db/ledger bindings.ndjson --dry-run",
      description: "What would happen",
    },
    { command: "cellkit ledger import s3://cells/router bindings.ndjson", description: "Do it" },
  ],
  async run(config, { defer, note, print, signal }) {
    const { importLedger, LedgerMissingError } = await import("@cellkit/ledger");
    const { dryRun, capacity } = config;
    const requireExisting = config.requireExisting || dryRun;
    const ledger = await openPlace(config, {
      requireExisting,
      ...(capacity === undefined ? {} : { capacity }),
    }).catch((error: unknown) => {
      if (dryRun && !config.requireExisting && error instanceof LedgerMissingError) return undefined;
      throw error;
    });
    if (ledger !== undefined) defer("the ledger", () => ledger.close());
    else note("no ledger has been created there yet");
    const result = await importLedger(ledger, () => createReadStream(config.file), {
      dryRun,
      signal,
      onProgress: (done, all) => {
        if (done % 10_000 === 0) note(`${done} of ${all}`);
      },
    });
    const { recordCount, addedCount, presentCount, conflictCount, fullCount, conflicts } = result;
    if (config.json) print(JSON.stringify(result));
    else {
      const counts = `${dryRun ? "to be added" : "added"} ${addedCount}, present ${presentCount}, conflict ${conflictCount}, full ${fullCount}`;
      print(`${recordCount} bindings: ${counts}`);
      for (const key of conflicts) print(`conflict  ${key}`);
    }
    if (conflictCount > 0)
      note(
        `${conflictCount} ids belong to somebody else in this ledger; they were left as they are. See: cellkit ledger show URL --key HEX`,
      );
    if (fullCount > 0) note("the ledger is full: give it more --capacity");
    return conflictCount + fullCount > 0 ? 1 : 0;
  },
});
