/**
 * What an attempt amounted to, which decides whether a further one is safe:
 * - `not-sent`: nothing left this process (refused connection, connect timeout, closed pool);
 * - `refused`: the server says that it did not run (the drain marker, or `Cellkit-Outcome: not-run`);
 * - `overloaded`: admission refused it before it ran;
 * - `app-status`: 408, 429, 502, 503 or 504 without such proof;
 * - `ambiguous`: it was sent and no answer tells whether it ran;
 * - `answered`: any other status;
 * - `committed`: the caller has the headers, and what follows is the caller's.
 */
export type AttemptClass =
  | "not-sent"
  | "refused"
  | "overloaded"
  | "app-status"
  | "ambiguous"
  | "answered"
  | "committed";
