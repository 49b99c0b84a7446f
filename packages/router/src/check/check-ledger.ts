// Whether the ledger is there and what lies in it. It is opened as one that must exist, so that looking never makes an empty one.
import { access, constants } from "node:fs/promises";
import { LedgerError, LedgerMissingError, parseLedgerUrl, type StoredLedger } from "@cellkit/ledger";
import { type LedgerConfig, ledgerAddress, openRouterLedger } from "../router-ledger.ts";
import type { CheckResult } from "./check-result.ts";

/** From here on it is told how full it is. */
const nearlyFull = 0.8;

/**
 * Opens the ledger for a check.
 * @returns `ledger` where there is one; the caller closes it. `result` says what was found, but for its content
 */
export async function findLedger(
  config: LedgerConfig,
): Promise<{ ledger: StoredLedger | undefined; result: CheckResult }> {
  const result = (verdict: CheckResult["verdict"], detail: string): CheckResult => ({
    name: "ledger",
    verdict,
    detail,
  });
  try {
    const location = parseLedgerUrl(ledgerAddress(config));
    const ledger = await openRouterLedger({ ...config, requireExistingLedger: true }, () => undefined);
    try {
      if (location.kind === "posix")
        await access(location.directory, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch (error) {
      await ledger.close();
      return { ledger: undefined, result: result("failed", `this user may not write there: ${told(error)}`) };
    }
    return { ledger, result: result("passed", `${ledger.url}, ledger ${ledger.ledgerId}`) };
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    if (error instanceof LedgerMissingError && !config.requireExistingLedger)
      return {
        ledger: undefined,
        result: result(
          "warning",
          "there is none, or it has no mark of its creation: a first router would make or mark it, and an empty one knows no owner of any run before",
        ),
      };
    return { ledger: undefined, result: result("failed", told(error)) };
  }
}

/** How full it is, and whether every owner in it is still in the list. */
export async function checkRecords(
  ledger: StoredLedger,
  origins: readonly string[],
  signal: AbortSignal,
): Promise<CheckResult> {
  const name = "records";
  const owners = new Map<string, number>();
  let count = 0;
  let unreadable = 0;
  try {
    for await (const { owner, problem } of ledger.entries({ signal })) {
      if (owner === undefined) {
        if (problem !== undefined) unreadable += 1;
        continue;
      }
      count += 1;
      owners.set(owner.backend, (owners.get(owner.backend) ?? 0) + 1);
    }
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    return { name, verdict: "failed", detail: told(error) };
  }
  const { capacity } = ledger;
  const many = capacity === undefined ? `${count} records` : `${count} records of at most ${capacity}`;
  if (capacity !== undefined && count >= capacity)
    return { name, verdict: "failed", detail: `${many}: new ids are refused` };
  const problems = [
    ...(capacity !== undefined && count >= nearlyFull * capacity ? ["it is nearly full"] : []),
    ...(unreadable > 0
      ? [`${unreadable} entries are no readable records: \`cellkit ledger verify\` names them`]
      : []),
    ...[...owners].flatMap(([owner, its]) =>
      origins.includes(owner)
        ? []
        : [`${its} belong to ${owner}, which is not in the list: they get 503 until it is`],
    ),
  ];
  if (problems.length > 0)
    return { name, verdict: "warning", detail: `${many}; ${problems.slice(0, 20).join("; ")}` };
  return { name, verdict: "passed", detail: many };
}

function told(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
