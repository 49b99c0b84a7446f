/** One of several processes that use a ledger at once: opens it, waits for a line, works, and prints each call before and after it. */
import { once } from "node:events";
import { writeSync } from "node:fs";
import type { LedgerOptions } from "../../src/ledger.ts";
import { type HistoryLoad, runHistoryLoad } from "./history-load.ts";
import { type LedgerPlace, openAt } from "./open-at.ts";

const task = JSON.parse(process.argv.at(-1) ?? "") as {
  place: LedgerPlace;
  options: LedgerOptions;
  load: HistoryLoad;
};

/** At once and whole, so that what was printed before a kill has arrived. */
function print(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

const ledgers = [await openAt(task.place, task.options), await openAt(task.place, task.options)];
print("ready");
await once(process.stdin, "data");
await runHistoryLoad(ledgers, task.load, (call, operation) => print([call, operation]));
for (const ledger of ledgers) await ledger.close();
print("done");
process.stdin.destroy();
