/** Addresses of databases, which may hold a password. */
import { LedgerOptionError } from "../errors.ts";

/**
 * Refuses an address in which part of a password would be taken for a host, a path or a parameter, and then be shown: one with an `@`
 * behind the first `/ ? #`, which is there when the password has one of these as it is.
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION), which shows nothing of the address
 */
export function checkConnectionUrl(url: string): void {
  const [scheme, rest] = /^postgres(?:ql)?:(\/\/)?/i.exec(url) ?? [];
  // Other kinds, such as a socket's path, have no password.
  if (scheme === undefined) return;
  if (rest === undefined)
    throw new LedgerOptionError("a database's address begins with postgres://: two slashes behind the colon");
  const [, path = "", query = "", fragment = ""] =
    /^[^/?#]*([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(url.slice(scheme.length)) ?? [];
  const names = query.split("&").map((each) => each.split("=")[0]);
  if ([path, fragment, ...names].some((part) => part?.includes("@")))
    throw new LedgerOptionError(
      "the database's address has an @ behind its host: percent-encode / ? # and @ in the user and the password, or give the password in PGPASSWORD",
    );
}
