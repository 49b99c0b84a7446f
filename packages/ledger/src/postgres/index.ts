export { openPostgresLedger, type PostgresLedgerOptions } from "./open-postgres-ledger.ts";
export { ledgerTableSql } from "./table.ts";
