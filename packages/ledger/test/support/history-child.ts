/** One of several processes that use a ledger at once: opens it, waits for a line, works, prints its history. */
import { once } from "node:events";
import type { LedgerOptions } from "../../src/ledger.ts";
import { type HistoryLoad, runHistoryLoad } from "./history-load.ts";
import { type LedgerPlace, openAt } from "./open-at.ts";

const task = JSON.parse(process.argv.at(-1) ?? "") as {
  place: LedgerPlace;
  options: LedgerOptions;
  load: HistoryLoad;
};
const ledgers = [await openAt(task.place, task.options), await openAt(task.place, task.options)];
process.stdout.write(`${JSON.stringify("ready")}\n`);
await once(process.stdin, "data");
const operations = await runHistoryLoad(ledgers, task.load);
for (const ledger of ledgers) await ledger.close();
process.stdout.write(`${JSON.stringify(operations)}\n`);
process.stdin.destroy();
