// `cellkit ledger export URL FILE`: a ledger's bindings, to be taken elsewhere.
import { once } from "node:events";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { adoptOption, ledgerPlaceOptions, ledgerUrl, openPlace } from "../ledger-options.ts";

/** The command's options. */
export const ledgerExportOptions = z.strictObject({
  url: ledgerUrl,
  file: z.string().min(1).meta({
    description: "Where to write; it must not be there yet. - is standard output.",
    placeholder: "FILE",
    positional: true,
  }),
  adopt: adoptOption,
  ...ledgerPlaceOptions,
});

/** The command. */
export const ledgerExport = defineCommand<typeof ledgerExportOptions, CommandContext>({
  summary: "Write all bindings of a ledger to a file",
  description:
    "Writes every binding of a ledger to a file of JSON lines, whose last line has their count and a digest, so that a file that was cut is noticed. Stop the routers first: what is claimed meanwhile may be missing. A corrupt record ends it, since an export without it would free an id that is taken.",
  schema: ledgerExportOptions,
  exitCodes: {
    0: "done: the file is whole and durable",
    1: "failure: no ledger there, a corrupt record, the disk is full; standard error says why, and there is no file",
    2: "bad flags or environment, or the file is there already",
    130: "ended by a signal",
  },
  examples: [
    {
      command: "cellkit ledger export /var/lib/router/ownership bindings.ndjson",
      description: "Then: cellkit ledger import postgres://router@db/ledger bindings.ndjson",
    },
  ],
  async run(config, { defer, note, signal }) {
    const { exportLedger, exportToFile } = await import("@cellkit/ledger");
    const ledger = await openPlace(config, { requireExisting: !config.adopt });
    defer("the ledger", () => ledger.close());
    const told = ({ recordCount, leftOutCount }: { recordCount: number; leftOutCount: number }) => {
      note(`${recordCount} bindings of ${ledger.url}`);
      if (leftOutCount > 0)
        note(`${leftOutCount} things that bind nothing were left out: cellkit ledger verify names them`);
      return 0;
    };
    if (config.file === "-") {
      const lines = exportLedger(ledger, { signal });
      for (;;) {
        const next = await lines.next();
        if (next.done === true) return told(next.value);
        if (!process.stdout.write(next.value)) await once(process.stdout, "drain", { signal });
      }
    }
    try {
      return told(await exportToFile(ledger, config.file, { signal }));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      note(`cellkit ledger export: ${config.file} is there already: name another file`);
      return 2;
    }
  },
});
