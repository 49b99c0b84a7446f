/** Callers that hammer few ids of one ledger at once, and what they were told. */
import { type HistoryOperation, recordHistory } from "../../src/conformance/history.ts";
import { type Digest, loadDigest } from "../../src/digest.ts";
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

/** Hears of each call before it is made (as one that nobody was told the end of) and after it, under one number each. */
export type HistoryReport = (call: string, operation: HistoryOperation) => void;

type LoadCall =
  | { kind: "claim" | "restore"; id: string; body: string }
  | { kind: "lookup"; id: string }
  | { kind: "retire"; id: string; quarantineMs: number }
  | { kind: "sweep"; quarantineMs: number };

/** How often a caller uses an id before it goes on to the next; all go at about the same pace. */
const USES_COUNT = 6;

/** Runs all callers, each on one of the handles, to their end. */
export async function runHistoryLoad(
  ledgers: readonly StoredLedger[],
  load: HistoryLoad,
  report: HistoryReport = () => {},
): Promise<HistoryOperation[]> {
  const digest = await loadDigest();
  const callers = Array.from({ length: load.callerCount }, async (_, caller) => {
    const client = `${load.client}-${caller}`;
    const handle = ledgers[caller % ledgers.length] as StoredLedger;
    const { ledger, operations } = recordHistory(handle, { client });
    const random = randomNumbers(load.seed + Buffer.from(client).readUIntBE(0, 3) + caller * 7_919);
    for (let done = 0; done < load.operationCount; done++) {
      const call = chooseCall(done, random, load.retiring);
      report(`${client}#${done}`, unanswered(call, client, digest));
      await perform(ledger, call, client, digest);
      const operation = operations[done];
      if (operation !== undefined) report(`${client}#${done}`, operation);
    }
    return operations;
  });
  return (await Promise.all(callers)).flat();
}

function chooseCall(done: number, random: () => number, retiring: boolean): LoadCall {
  const id = `id-${Math.floor(done / USES_COUNT + random() * 2)}`;
  const body = random() < 0.8 ? "body" : "other bytes";
  const quarantineMs = random() < 0.5 ? 0 : 3_600_000;
  const kind = random();
  if (kind < 0.25) return { kind: "lookup", id };
  if (kind < 0.3) return { kind: "restore", id, body };
  if (kind < 0.42 && retiring) return { kind: "retire", id, quarantineMs };
  if (kind < 0.45 && retiring) return { kind: "sweep", quarantineMs };
  return { kind: "claim", id, body };
}

async function perform(
  ledger: StoredLedger,
  call: LoadCall,
  client: string,
  digest: Digest,
): Promise<unknown> {
  const backend = `http://${client}`;
  switch (call.kind) {
    case "claim":
      return ledger.claim(call.id, call.body, async () => backend);
    case "restore":
      return ledger.restore(digest.key(call.id), { backend, bodyHash: digest.bodyHash(call.body) });
    case "lookup":
      return ledger.lookup(call.id);
    case "retire":
      return ledger.retire(call.id, call);
    case "sweep":
      return ledger.sweep(call);
  }
}

/** The call as it is if its caller dies in it. */
function unanswered(call: LoadCall, client: string, { key, bodyHash }: Digest): HistoryOperation {
  const [seconds, nanoseconds] = process.hrtime();
  return {
    client,
    kind: call.kind,
    ...("id" in call ? { key: key(call.id) } : {}),
    ...("body" in call ? { bodyHash: bodyHash(call.body), backend: `http://${client}` } : {}),
    calledUs: seconds * 1e6 + nanoseconds / 1e3,
    returnedUs: null,
    answer: null,
  };
}
