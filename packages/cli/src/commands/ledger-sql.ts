// `cellkit ledger sql`: the statement for whoever may create tables.
import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { z } from "zod";

/** The command's options. */
export const ledgerSqlOptions = z.strictObject({
  table: z
    .string()
    .regex(/^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$/, "must be NAME or SCHEMA.NAME, in a-z 0-9 _")
    .default("cellkit_ledger")
    .meta({
      description:
        "The table, as the program's option `table` names it. The commands and openLedger use the default.",
    }),
  role: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, "must be a role's name in a-z 0-9 _")
    .optional()
    .meta({ description: "Also print what this role of the routers must be granted.", placeholder: "ROLE" }),
});

/** The command. */
export const ledgerSql = defineCommand<typeof ledgerSqlOptions, CommandContext>({
  description:
    "Prints the statement that makes the one table of all ledgers of a PostgreSQL database, for an administrator where the routers' role may not create tables. Connects to nothing.",
  schema: ledgerSqlOptions,
  exitCodes: { 0: "printed", 1: "failure", 2: "bad flags", 130: "ended by a signal" },
  examples: [
    {
      command: "cellkit ledger sql --role router | psql -d ledger",
      description: "As the database's administrator",
    },
  ],
  async run({ table, role }, { print }) {
    const { ledgerTableSql } = await import("@cellkit/ledger/postgres");
    print(ledgerTableSql(table));
    if (role !== undefined) print(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${table} TO ${role};`);
    return 0;
  },
});
