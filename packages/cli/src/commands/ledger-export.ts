// `cellkit ledger export URL FILE`: a ledger's bindings, to be taken elsewhere.
import { once } from "node:events";
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import type { ExportSummary } from "@cellkit/ledger";
import { z } from "zod";
import { ledgerPlaceOptions, ledgerUrl, readPlace } from "../ledger-options.ts";
import { counted } from "../plural.ts";

/** The command's options. */
export const ledgerExportOptions = z.strictObject({
  url: ledgerUrl,
  file: z.string().min(1).meta({
    description: "Where to write; it must not be there yet. - is standard output.",
    placeholder: "FILE",
    positional: true,
  }),
  ...ledgerPlaceOptions,
});

/** The command. */
export const ledgerExport = defineCommand<typeof ledgerExportOptions, CommandContext>({
  description:
    "Writes every binding of a ledger to a file of JSON lines, whose last line has their count and a digest, so that a file that was cut is noticed. Writes nothing to the ledger: a copy, a read-only mount and a directory of the original router will do. Standard error has the count and a digest of the bindings, as `verify` of a ledger has it. Stop the routers first: what is claimed meanwhile may be missing. A corrupt record ends it, since an export without it would free an id that is taken.",
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
    const ledger = await readPlace(config);
    defer("the ledger", () => ledger.close());
    const told = ({ recordCount, leftOutCount, bindingsDigest }: ExportSummary) => {
      note(`${counted(recordCount, "binding")} of ${ledger.url}`);
      note(`bindings ${bindingsDigest}`);
      if (leftOutCount > 0)
        note(
          `left out, since ${leftOutCount === 1 ? "it binds" : "they bind"} nothing: ${counted(leftOutCount, "thing")} that cellkit ledger verify names`,
        );
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
