// The options by which a command is told of a ledger.
import { storeOptions } from "@cellkit/daemon";
import type { OpenLedgerOptions, StoredLedger } from "@cellkit/ledger";
import { z } from "zod";
import { LedgerPlaceError } from "./errors.ts";

/** `URL`, to be the first of a command's schema. An address with a password is shown nowhere. */
export const ledgerUrl = z.string().min(1).max(4_096).meta({
  description:
    "Where the ledger lies: a directory, s3://BUCKET/PREFIX, or postgres://USER@HOST/DATABASE (its password from PGPASSWORD, where others on the machine cannot read it).",
  placeholder: "URL",
  positional: true,
  secret: true,
});

/** Which ledger of that place, and the bucket's options; to be spread into a schema. */
export const ledgerPlaceOptions = {
  name: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 of a-z 0-9 -")
    .default("executions")
    .meta({ description: "Which of the ledgers there." }),
  ...storeOptions("Bucket"),
};

/** For commands that must not make a ledger where there is none. */
export const adoptOption = z.boolean().default(false).meta({
  description:
    "Also open a ledger that has no mark of its creation, as those of the original router in a directory, and leave the mark there. Without it such a place is refused, as an empty one is: it may be a mount that is missing.",
});

/** What those options say, as a schema gives them. */
interface LedgerPlace {
  url: string;
  name: string;
  endpoint?: string | undefined;
  region: string;
}

/** Opens it; the library is loaded only now. @throws LedgerPlaceError (`CELLKIT_CLI_LEDGER_PLACE`) for an address of no store */
export async function openPlace(
  { url, name, endpoint, region }: LedgerPlace,
  options: OpenLedgerOptions = {},
): Promise<StoredLedger> {
  const { LedgerOptionError, openLedger } = await import("@cellkit/ledger");
  try {
    return await openLedger(url, { name, bucket: { endpoint, region }, ...options });
  } catch (error) {
    if (!(error instanceof LedgerOptionError)) throw error;
    throw new LedgerPlaceError(error.message, { cause: error });
  }
}
