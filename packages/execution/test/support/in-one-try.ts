import { heldClock } from "../../../../tools/test-support/held-clock.ts";

/** Half a minute: what one call may take in all. */
const oneTryMs = 30_000;

/** Starts a course that has half a minute for its first try, and no time left when that is over. A call's own limit goes on by the system's timers. */
export function inOneTry<T>(start: (time: { timeoutMs: number }) => Promise<T>): Promise<T> {
  const clock = heldClock();
  const started = start({ timeoutMs: oneTryMs });
  clock.ms += oneTryMs;
  return started;
}
