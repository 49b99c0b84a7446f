// What a command looks at before it writes into the directory of a ledger.
import { readdir } from "node:fs/promises";
import { LedgerPlaceError } from "./errors.ts";
import { printable } from "./printable.ts";

/** What lies in a ledger's directory and belongs to it; hidden names are staging files. */
const ownName = /^([0-9a-f]{64}\.(json|retired)|ownership\.lock|cellkit\.(ledger|count)|\..*)$/;

/**
 * Refuses what would lock the routers out, and tells what is doubtful but allowed.
 * @param userId of this process
 * @throws LedgerPlaceError (`CELLKIT_CLI_LEDGER_PLACE`) when root would leave files that the routers' user cannot open
 */
export async function checkBeforeWriting(
  directory: string,
  note: (line: string) => void,
  userId: number | undefined = process.getuid?.(),
): Promise<void> {
  const { describeDirectory } = await import("@cellkit/ledger");
  const place = await describeDirectory(directory);
  if (place === undefined) {
    if (userId === 0)
      note(`${directory} will belong to root: before routers use it, give it to their user (chown -R)`);
    return;
  }
  if (userId === 0 && place.userId !== 0)
    throw new LedgerPlaceError(
      `the ledger in ${directory} belongs to the user ${place.userId}, and its routers could not open what root writes there: run the same command as that user, with sudo -u '#${place.userId}' before it`,
    );
  const { kind, name } = place.fileSystem;
  if (kind === "memory")
    note(`${directory} is on ${name}, which forgets with the machine: every id would be new again then`);
  const foreign = (await readdir(directory, { withFileTypes: true })).filter(
    (each) => !ownName.test(each.name) && !each.isDirectory(),
  );
  if (foreign.length > 0)
    note(
      `${directory} has ${foreign.length} more that ${foreign.length === 1 ? "is" : "are"} nothing of a ledger's, ${printable(foreign[0]?.name ?? "")} for one: is it the right directory?`,
    );
}
