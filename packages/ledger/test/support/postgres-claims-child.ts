/** Claims ids all at once when it is told to, and prints what it was answered. */
import { once } from "node:events";
import { openPostgresLedger } from "../../src/postgres/index.ts";

const { connection, name, owner, ids } = JSON.parse(process.argv[2] ?? "") as {
  connection: string;
  name: string;
  owner: string;
  ids: string[];
};
const ledger = await openPostgresLedger({ connection, name, timeoutMs: 30_000 });
process.stdout.write("ready\n");
await once(process.stdin, "data");
const claims = await Promise.allSettled(ids.map((id) => ledger.claim(id, "body", async () => owner)));
const kinds = claims.map((claim) => (claim.status === "fulfilled" ? claim.value.kind : String(claim.reason)));
process.stdout.write(`${JSON.stringify(kinds)}\n`);
await ledger.close();
process.stdin.destroy();
