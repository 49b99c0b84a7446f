// `cellkit ledger verify URL`: whether everything in a ledger is as it should be.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { directoryOf, ledgerPlaceOptions, ledgerUrl, readPlace } from "../ledger-options.ts";
import { counted } from "../plural.ts";
import { jsonLine, printable } from "../printable.ts";

/** The command's options. */
export const ledgerVerifyOptions = z.strictObject({
  url: ledgerUrl,
  json: z.boolean().default(false).meta({
    description:
      "Print one JSON object: recordCount, markedCount, and count and list of corrupt, foreign, marks, staleStaging (1,000 of each at most), otherLedgers, bindingsDigest.",
  }),
  ...ledgerPlaceOptions,
});

/** The command. */
export const ledgerVerify = defineCommand<typeof ledgerVerifyOptions, CommandContext>({
  description:
    "Reads every record of a ledger, and tells what cannot be read, what is nothing of a ledger's, and marks for a sweep that have no record. Other ledgers below a directory are named, and so is what a crash left there; both are no trouble. The last line is a digest of all bindings, whatever their order: two ledgers that bind the same have the same. Takes no lock and writes nothing; a copy and a read-only mount will do, and so will a directory of the original router.",
  schema: ledgerVerifyOptions,
  exitCodes: {
    0: "clean",
    1: "something was found, or standard output could not be written",
    2: "could not tell: bad flags, no ledger there, or it cannot be read; standard error says why",
    130: "ended by a signal",
  },
  examples: [
    { command: "cellkit ledger verify /var/lib/router/ownership", description: "Before and after a move" },
  ],
  async run(config, { defer, note, print, signal }) {
    const { isClean, verifyLedger } = await import("@cellkit/ledger");
    try {
      const ledger = await readPlace(config);
      defer("the ledger", () => ledger.close());
      const directory = await directoryOf(config);
      const found = await verifyLedger(ledger, {
        directory,
        signal,
        onProgress: (seen) => {
          if (seen % 20_000 === 0) note(`${seen} entries read`);
        },
      });
      if (config.json) print(jsonLine(found));
      else {
        const kinds = { corrupt: found.corrupt, foreign: found.foreign, mark: found.marks };
        for (const [kind, list] of Object.entries(kinds))
          for (const { name, problem } of list) print(`${kind}  ${printable(name)}  ${printable(problem)}`);
        for (const { name, problem } of found.staleStaging) note(`left over ${printable(name)}: ${problem}`);
        for (const name of found.otherLedgers)
          note(`another ledger, not looked at: --name ${printable(name)}`);
        print(
          `${counted(found.recordCount, "record")} (${found.markedCount} marked), ${found.corruptCount} corrupt, ${found.foreignCount} foreign, ${counted(found.markCount, "mark")} without a record`,
        );
        print(`bindings ${found.bindingsDigest}`);
      }
      return isClean(found) ? 0 : 1;
    } catch (error) {
      if (signal.aborted) throw error;
      note(`cellkit ledger verify: ${printable(error instanceof Error ? error.message : String(error))}`);
      return 2;
    }
  },
});
