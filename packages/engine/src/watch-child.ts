// Whether a workerd still answers. One thread does its JavaScript, its cluster and its lease: a Worker that loops stops all
// of it, and neither its port nor a signal would tell.
import type { ChildExit } from "./child-process.ts";
import { entryAnswers } from "./control-client.ts";
import type { EngineLog } from "./engine-options.ts";
import type { Launched } from "./launch.ts";
import { pause } from "./pause.ts";

const watchMs = 1000;
/** How long one answer of the entry module may take. */
export const answerTimeoutMs = 1000;
/** Without an answer for so long, one question was asked in vain: the node is not healthy. */
export const staleAnswerMs = watchMs + 2 * answerTimeoutMs;

/** What to do meanwhile. */
export interface WatchOptions {
  readonly watchdogMs: number;
  readonly log: EngineLog;
  readonly answered: () => void;
}

/** Asks every second until the process ends; kills it when it answers nothing for `watchdogMs`. */
export async function watchChild(launched: Launched, options: WatchOptions): Promise<ChildExit> {
  const gone = new AbortController();
  void launched.exited.then(() => gone.abort());
  let lastAnswerMs = performance.now();
  while (!gone.signal.aborted) {
    await pause(watchMs, gone.signal).catch(() => undefined);
    if (gone.signal.aborted) break;
    if (await entryAnswers(launched.sockets.controlSocket, answerTimeoutMs)) {
      lastAnswerMs = performance.now();
      options.answered();
    } else if (performance.now() - lastAnswerMs >= options.watchdogMs) {
      options.log.error({ workerdPid: launched.child.pid }, "workerd does not answer: ending it");
      launched.child.kill("SIGKILL");
      await launched.exited;
    }
  }
  return launched.exited;
}
