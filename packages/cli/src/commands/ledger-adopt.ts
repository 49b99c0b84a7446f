// `cellkit ledger adopt DIR`: a directory of the original router becomes a ledger that may be required to be there.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";
import { checkBeforeWriting } from "../ledger-directory.ts";
import { directoryOf, ledgerPlaceOptions, ledgerUrl, openPlace, readPlace } from "../ledger-options.ts";

/** The command's options. */
export const ledgerAdoptOptions = z.strictObject({
  url: ledgerUrl.meta({
    description: "The directory of the original router, with at least one record in it.",
    placeholder: "DIR",
  }),
  name: ledgerPlaceOptions.name,
});

/** The command. */
export const ledgerAdopt = defineCommand<typeof ledgerAdoptOptions, CommandContext>({
  description:
    "Leaves the mark of creation (cellkit.ledger) in a directory that only the original router has used, so that routers that require a ledger start on it. Its records stay as they are, routers of the original go on beside it, and the way back is to do nothing. A directory without a single record is refused: it may be a mount that is missing. Looking, verifying and exporting need no adoption.",
  schema: ledgerAdoptOptions,
  exitCodes: {
    0: "the directory has the mark now, or had it before; its id is on standard output",
    1: "failure: no record there, or it cannot be written; standard error says why",
    2: "bad flags or environment, no directory, or root on a directory of another user",
    130: "ended by a signal",
  },
  examples: [
    {
      command: "sudo -u router cellkit ledger adopt /var/lib/router/ownership",
      description: "As the routers' user",
    },
  ],
  async run({ url, name }, { defer, note, print }) {
    const place = { url, name, region: "us-east-1" };
    const directory = await directoryOf(place);
    if (directory === undefined) {
      note("cellkit ledger adopt: the original router keeps its ledger in a directory: give one");
      return 2;
    }
    const reader = await readPlace(place);
    defer("the directory", () => reader.close());
    if (reader.ledgerId !== undefined) {
      note(`${directory} has its mark already`);
      print(reader.ledgerId);
      return 0;
    }
    await checkBeforeWriting(directory, note);
    const ledger = await openPlace(place);
    defer("the ledger", () => ledger.close());
    note(`${directory} is a ledger now, with ${await ledger.count()} records counted against its capacity`);
    print(ledger.ledgerId);
    return 0;
  },
});
