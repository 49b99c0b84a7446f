/** Callers that hammer few ids of one ledger at once, and what they were told. */
import { type HistoryOperation, recordHistory } from "../../src/conformance/history.ts";
import { loadDigest } from "../../src/digest.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { randomNumbers } from "./random.ts";

export interface HistoryLoad {
  /** Tells the callers of several processes apart, and their random choices. */
  client: string;
  seed: number;
  callerCount: number;
  /** Of each caller. */
  operationCount: number;
  /** Whether ids are retired and swept, too. */
  retiring: boolean;
}

/** How often a caller uses an id before it goes on to the next; all go at about the same pace. */
const USES_COUNT = 6;

/** Runs all callers, each on one of the handles, to their end. */
export async function runHistoryLoad(
  ledgers: readonly StoredLedger[],
  load: HistoryLoad,
): Promise<HistoryOperation[]> {
  const { key: keyOf, bodyHash } = await loadDigest();
  const callers = Array.from({ length: load.callerCount }, async (_, caller) => {
    const client = `${load.client}-${caller}`;
    const handle = ledgers[caller % ledgers.length] as StoredLedger;
    const { ledger, operations } = recordHistory(handle, { client });
    const random = randomNumbers(load.seed + Buffer.from(client).readUIntBE(0, 3) + caller * 7_919);
    const choose = async () => `http://${client}`;
    for (let done = 0; done < load.operationCount; done++) {
      const id = `id-${Math.floor(done / USES_COUNT + random() * 2)}`;
      const body = random() < 0.8 ? "body" : "other bytes";
      const what = random();
      const quarantineMs = random() < 0.5 ? 0 : 3_600_000;
      if (what < 0.55) await ledger.claim(id, body, choose);
      else if (what < 0.8) await ledger.lookup(id);
      else if (what < 0.85)
        await ledger.restore(keyOf(id), { backend: `http://${client}`, bodyHash: bodyHash(body) });
      else if (!load.retiring) await ledger.claim(id, body, choose);
      else if (what < 0.97) await ledger.retire(id, { quarantineMs });
      else await ledger.sweep({ quarantineMs });
    }
    return operations;
  });
  return (await Promise.all(callers)).flat();
}
