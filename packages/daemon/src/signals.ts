/**
 * A terminal sends Ctrl-C to every process in front of it, and a parent such as npm passes it on once more. The same
 * signal again within this time is that echo, not a person's second wish.
 */
const ECHO_MS = 100;

/** What signals do. */
export interface SignalHandlers {
  /** The first one. */
  first(signal: NodeJS.Signals): void;
  /** A later one: end at once. */
  second(signal: NodeJS.Signals): void;
}

/** Which signals end a program. SIGHUP is what a closed terminal sends; a daemon has none. */
const ending = { daemon: ["SIGTERM", "SIGINT"], command: ["SIGTERM", "SIGINT", "SIGHUP"] } as const;

/** Listens for SIGTERM and SIGINT, of a command also SIGHUP, until the returned function is called. */
export function watchSignals(handlers: SignalHandlers, kind: keyof typeof ending = "daemon"): () => void {
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
  for (const name of ending[kind]) process.on(name, listener);
  return () => {
    for (const name of ending[kind]) process.off(name, listener);
  };
}
