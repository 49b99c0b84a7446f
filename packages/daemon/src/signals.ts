/**
 * A terminal sends Ctrl-C to every process in front of it, and a parent such as npm passes it on once more. The same
 * signal again within this time is that echo, not a person's second wish.
 */
const ECHO_MS = 100;

/** What signals do. */
export interface SignalHandlers {
  /** The first SIGTERM or SIGINT. */
  first(signal: NodeJS.Signals): void;
  /** A later one: end at once. */
  second(signal: NodeJS.Signals): void;
}

/** Listens for SIGTERM and SIGINT until the returned function is called. */
export function watchSignals(handlers: SignalHandlers): () => void {
  let seen: { signal: NodeJS.Signals; atMs: number } | undefined;
  const listener = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (seen === undefined) {
      seen = { signal, atMs: nowMs };
      handlers.first(signal);
    } else if (signal !== seen.signal || nowMs - seen.atMs > ECHO_MS) {
      handlers.second(signal);
    }
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, listener);
  return () => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.off(name, listener);
  };
}
