// How the handlers of a node are called: what they throw, at once or later, ends neither the process nor another call.

/** Runs a handler; what it throws or rejects with goes to `failed`. */
export function runHandler(run: () => unknown, failed: (error: unknown) => void): void {
  try {
    const done = run();
    if (typeof done === "object" && done !== null && "then" in done) Promise.resolve(done).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/** What a handler of errors threw has nobody left to go to but the process, as a warning. */
export function warnOf(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
