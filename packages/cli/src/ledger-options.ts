// The options by which a command is told of a ledger.
import { storeOptions } from "@cellkit/daemon";
import type { LedgerReader, OpenLedgerOptions } from "@cellkit/ledger";
import { z } from "zod";
import { LedgerAbsentError, LedgerPlaceError } from "./errors.ts";

/** `URL`, to be the first of a command's schema. An address with a password is shown nowhere. */
export const ledgerUrl = z.string().min(1).max(4_096).meta({
  description:
    "Where the ledger lies: a directory (its path, or file:///DIRECTORY), s3://BUCKET/PREFIX, or postgres://USER@HOST/DATABASE (its password from PGPASSWORD, where others on the machine cannot read it).",
  placeholder: "URL",
  positional: true,
  secret: true,
});

const nameText = z.string().regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 of a-z 0-9 -");

/** Which ledger of that place, and the bucket's options; to be spread into a schema. */
export const ledgerPlaceOptions = {
  name: nameText.default("executions").meta({ description: "Which of the ledgers there." }),
  ...storeOptions("Bucket"),
};

/** For a command that knows a better default than `executions`. */
export const optionalName = nameText.optional();

/** What those options say, as a schema gives them. */
export interface LedgerPlace {
  url: string;
  name: string;
  endpoint?: string | undefined;
  region: string;
}

/**
 * Opens it for reading: nothing is created or written. The library is loaded only now.
 * @throws LedgerPlaceError (`CELLKIT_CLI_LEDGER_PLACE`) for an address of no store, LedgerAbsentError (`CELLKIT_CLI_LEDGER_ABSENT`)
 */
export async function readPlace({ url, name, endpoint, region }: LedgerPlace): Promise<LedgerReader> {
  const { openLedgerReader } = await import("@cellkit/ledger");
  return inWordsOfCommands(
    () => openLedgerReader(url, { name, bucket: { endpoint, region } }),
    "A router that need not find one makes it at its start, and cellkit ledger import does",
  );
}

/** Opens it for writing, and creates it unless the options forbid that. Throws as {@link readPlace}. */
export async function openPlace(
  { url, name, endpoint, region }: LedgerPlace,
  options: OpenLedgerOptions = {},
): ReturnType<typeof import("@cellkit/ledger").openLedger> {
  const { openLedger } = await import("@cellkit/ledger");
  return inWordsOfCommands(
    () => openLedger(url, { name, bucket: { endpoint, region }, ...options }),
    "Without --require-existing it is made; for a directory of the original router there is cellkit ledger adopt",
  );
}

/** The library's messages speak of its options, and what is a mistake in a program is one in the flags here. */
async function inWordsOfCommands<T>(open: () => Promise<T>, remedy: string): Promise<T> {
  const { LedgerMissingError, LedgerOptionError } = await import("@cellkit/ledger");
  try {
    return await open();
  } catch (cause) {
    if (cause instanceof LedgerMissingError)
      throw new LedgerAbsentError(`${cause.problem}. ${remedy}`, { cause });
    if (cause instanceof LedgerOptionError) throw new LedgerPlaceError(cause.message, { cause });
    throw cause;
  }
}

/** The directory of a ledger that lies in one. @throws LedgerPlaceError for an address of no store */
export async function directoryOf({
  url,
  name,
}: Pick<LedgerPlace, "url" | "name">): Promise<string | undefined> {
  const { LedgerOptionError, parseLedgerUrl } = await import("@cellkit/ledger");
  try {
    const location = parseLedgerUrl(url);
    if (location.kind !== "posix") return undefined;
    return name === "executions" ? location.directory : `${location.directory}/${name}`;
  } catch (cause) {
    if (cause instanceof LedgerOptionError) throw new LedgerPlaceError(cause.message, { cause });
    throw cause;
  }
}
