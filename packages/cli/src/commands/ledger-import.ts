// `cellkit ledger import URL FILE`: bindings of another ledger.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import type { ExportHead, ImportTarget } from "@cellkit/ledger";
import { z } from "zod";
import { LedgerAbsentError, LedgerPlaceError } from "../errors.ts";
import { openImportFile } from "../import-file.ts";
import { checkBeforeWriting } from "../ledger-directory.ts";
import {
  directoryOf,
  ledgerPlaceOptions,
  ledgerUrl,
  openPlace,
  optionalName,
  readPlace,
} from "../ledger-options.ts";
import { counted } from "../plural.ts";
import { jsonLine, printable } from "../printable.ts";

/** The command's options. */
export const ledgerImportOptions = z.strictObject({
  url: ledgerUrl,
  file: z.string().min(1).meta({
    description: "What `cellkit ledger export` wrote. - is standard input.",
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
      "Print the result as one JSON object: ledger, recordCount, addedCount, presentCount, conflictCount, corruptCount, fullCount, conflicts, corrupt (1,000 keys of each at most), bindingsDigest.",
  }),
  ...ledgerPlaceOptions,
  name: optionalName.meta({
    description: "Into which of the ledgers there.",
    defaultText: "the one that the file was made from",
  }),
});

/** The command. */
export const ledgerImport = defineCommand<typeof ledgerImportOptions, CommandContext>({
  description:
    "Writes the bindings of an export into a ledger of any kind, durably, and never over one that is there. The file is checked whole before anything is written. With --dry-run nothing is: what is present, missing or in the way is counted, and that everything is present proves that a move lost nothing. When it breaks off, the same command goes on from there. A record's age and its mark for a sweep are not taken along: both begin anew.",
  schema: ledgerImportOptions,
  exitCodes: {
    0: "every binding of the file is in the ledger",
    1: "some are not: a conflict, a record there that cannot be read, or no room; or a failure, which standard error explains",
    2: "bad flags or environment, a file that cannot be read, or root on a directory of another user",
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
    const { importLedger } = await import("@cellkit/ledger");
    const { dryRun, capacity } = config;
    const file = await openImportFile(config.file, signal);
    defer("the file", () => file.close());
    const isDirectory = (await directoryOf({ url: config.url, name: "executions" })) !== undefined;
    let name = config.name ?? "";
    const open = (head: ExportHead) => {
      name = config.name ?? checkedName(head.ledger);
      if (name !== head.ledger)
        note(`the file is of the ledger ${printable(head.ledger)}, and goes into ${name}, as --name says`);
      return openTarget({ ...config, name }, { defer, note });
    };
    const result = await importLedger(open, () => file.read(), {
      dryRun,
      anyName: true,
      capacity: capacity ?? (isDirectory ? DIRECTORY_CAPACITY : undefined),
      signal,
      onProgress: (done, all) => {
        if (done % 10_000 === 0) note(`${done} of ${all}`);
      },
    });
    const { recordCount, addedCount, presentCount, conflictCount, corruptCount, fullCount } = result;
    if (config.json) print(jsonLine({ ledger: name, ...result }));
    else {
      const counts = `${dryRun ? "to be added" : "added"} ${addedCount}, present ${presentCount}, conflict ${conflictCount}, corrupt ${corruptCount}, full ${fullCount}`;
      print(`${counted(recordCount, "binding")}: ${counts}`);
      print(`bindings ${result.bindingsDigest}`);
      for (const key of result.conflicts) print(`conflict  ${key}`);
      for (const key of result.corrupt) print(`corrupt  ${key}`);
    }
    if (conflictCount > 0)
      note(
        `${counted(conflictCount, "id")} of the file ${conflictCount === 1 ? "is" : "are"} bound otherwise in this ledger, and stayed so. See: cellkit ledger show URL --key HEX`,
      );
    if (corruptCount > 0)
      note(
        `${counted(corruptCount, "record")} of this ledger cannot be read, and stayed as ${corruptCount === 1 ? "it is" : "they are"}: docs/move-a-ledger.md, "Restore a record", puts the file's in ${corruptCount === 1 ? "its" : "their"} place`,
      );
    if (fullCount > 0)
      note(
        `the ledger ${dryRun ? "will have" : "has"} no room for ${fullCount}: give it more --capacity, and its routers too`,
      );
    return conflictCount + corruptCount + fullCount > 0 ? 1 : 0;
  },
});

/** Opens what the bindings go into, once the file is known to be whole: nothing is created for another one. */
async function openTarget(
  config: z.output<typeof ledgerImportOptions> & { name: string },
  { defer, note }: Pick<CommandContext, "defer" | "note">,
): Promise<ImportTarget> {
  const { capacity, dryRun, requireExisting } = config;
  const directory = await directoryOf(config);
  if (directory !== undefined && !dryRun) await checkBeforeWriting(directory, note);
  // A dry run only reads, as `ls` does.
  const opened = dryRun
    ? readPlace(config)
    : openPlace(config, { requireExisting, ...(capacity === undefined ? {} : { capacity }) });
  const ledger = await opened.catch((error: unknown) => {
    if (dryRun && !requireExisting && error instanceof LedgerAbsentError) return undefined;
    throw error;
  });
  if (ledger !== undefined) defer("the ledger", () => ledger.close());
  else note("no ledger has been created there yet");
  return ledger;
}

/** What a directory holds unless it is told otherwise. */
const DIRECTORY_CAPACITY = 100_000;

/** @throws LedgerPlaceError for a name that only another program could have written into the file */
function checkedName(name: string): string {
  const parsed = optionalName.safeParse(name);
  if (parsed.success && parsed.data !== undefined) return parsed.data;
  throw new LedgerPlaceError(
    `the file names no ledger that can be: give --name, for example --name executions`,
  );
}
