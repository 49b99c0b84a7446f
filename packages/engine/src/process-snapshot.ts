// The counters that come from the process under an engine.
import { readEntryState } from "./control-client.ts";
import type { EngineSnapshot } from "./node-engine.ts";
import { residentBytes } from "./process-identity.ts";
import { answerTimeoutMs } from "./watch-child.ts";

/** Asks the process, as far as there is one; what it does not answer within a second is undefined. */
export async function processSnapshot(
  pid: number | undefined,
  controlSocket: string | undefined,
): Promise<Omit<EngineSnapshot, "state" | "deployment" | "restartCount" | "membership">> {
  const [entry, rssBytes] = await Promise.all([
    controlSocket === undefined
      ? undefined
      : readEntryState(controlSocket, answerTimeoutMs).catch(() => undefined),
    pid === undefined ? undefined : residentBytes(pid),
  ]);
  return {
    pid,
    rssBytes,
    occupied: entry?.cells,
    exactCells: entry?.exact,
    residents: entry?.residents,
    openedCells: entry?.opened,
    regularSockets: entry?.regularSockets,
    requests: entry?.requests,
    requestsInFlight: entry?.inFlight,
    requestsFailed: entry?.failed,
  };
}
