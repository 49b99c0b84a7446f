// Whether the ledger is there and what lies in it. It is opened to be read, so that looking never makes one, or marks it.
import { access, constants } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { LedgerError, type LedgerReader, parseLedgerUrl } from "@cellkit/ledger";
import { LedgerAbsentError, RouterError } from "../errors.ts";
import { type LedgerConfig, ledgerAddress, openRouterLedgerReader } from "../router-ledger.ts";
import type { CheckResult } from "./check-result.ts";

/** From here on it is told how full it is. */
const nearlyFull = 0.8;
/** What a directory holds where no capacity is given. */
const directoryCapacity = 100_000;

/**
 * Opens the ledger for a check.
 * @returns `ledger` where there is one; the caller closes it. `result` says what was found, but for its content
 */
export async function findLedger(
  config: LedgerConfig,
): Promise<{ ledger: LedgerReader | undefined; result: CheckResult }> {
  const result = (verdict: CheckResult["verdict"], detail: string): CheckResult => ({
    name: "ledger",
    verdict,
    detail,
  });
  try {
    const location = parseLedgerUrl(ledgerAddress(config));
    const ledger = await openRouterLedgerReader(config);
    const { url, ledgerId } = ledger;
    if (location.kind === "posix") {
      const { R_OK, W_OK, X_OK } = constants;
      const problem = await access(location.directory, R_OK | W_OK | X_OK).then(() => undefined, told);
      if (problem !== undefined)
        return { ledger, result: result("failed", `this user may not write there: ${problem}`) };
    }
    if (ledgerId !== undefined) return { ledger, result: result("passed", `${url}, ledger ${ledgerId}`) };
    const unmarked = `${url} has records and no mark of its creation, as the original's`;
    return {
      ledger,
      result: config.requireExistingLedger
        ? result("failed", `${unmarked}: \`cellkit ledger adopt\` leaves one`)
        : result("passed", `${unmarked}; the first router leaves one`),
    };
  } catch (error) {
    if (!(error instanceof LedgerError || error instanceof RouterError)) throw error;
    if (error instanceof LedgerAbsentError && !config.requireExistingLedger) {
      const problem = await obstacleTo(config);
      return {
        ledger: undefined,
        result:
          problem === undefined
            ? result(
                "warning",
                "there is none: a first router makes it, and an empty one knows no owner of any run before",
              )
            : result("failed", `there is none, and this user cannot make it: ${problem}`),
      };
    }
    return { ledger: undefined, result: result("failed", told(error)) };
  }
}

/** Why a router of this user could not make the directory; undefined where it could, and for what is none. */
async function obstacleTo(config: LedgerConfig): Promise<string | undefined> {
  const location = parseLedgerUrl(ledgerAddress(config));
  if (location.kind !== "posix") return undefined;
  const { R_OK, W_OK, X_OK } = constants;
  let place = resolve(location.directory);
  let mode = R_OK | W_OK | X_OK;
  for (;;) {
    try {
      await access(place, mode);
      return undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(place) === place) return told(error);
    }
    // Of what is there already, only the last directory gets a new entry.
    mode = W_OK | X_OK;
    place = dirname(place);
  }
}

/** How many records it may hold, as it would be opened with. */
export function capacityOf(config: LedgerConfig): number | undefined {
  const isDirectory = parseLedgerUrl(ledgerAddress(config)).kind === "posix";
  return config.ledgerCapacity ?? (isDirectory ? directoryCapacity : undefined);
}

/** How full it is, and whether every owner in it is still in the list. */
export async function checkRecords(
  ledger: LedgerReader,
  {
    capacity,
    origins,
    signal,
  }: {
    capacity: number | undefined;
    origins: readonly string[];
    signal: AbortSignal;
  },
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
  const many = `${count} ${count === 1 ? "record" : "records"}${capacity === undefined ? "" : ` of at most ${capacity}`}`;
  if (capacity !== undefined && count >= capacity)
    return { name, verdict: "failed", detail: `${many}: new ids are refused` };
  const problems = [
    ...(capacity !== undefined && count >= nearlyFull * capacity ? ["it is nearly full"] : []),
    ...(unreadable > 0
      ? [
          `${unreadable} ${unreadable === 1 ? "entry is no readable record" : "entries are no readable records"}: \`cellkit ledger verify\` names them`,
        ]
      : []),
    ...[...owners].flatMap(([owner, its]) =>
      origins.includes(owner)
        ? []
        : [
            `${its} ${its === 1 ? "belongs" : "belong"} to ${owner}, which is not in the list: they get 503 until it is`,
          ],
    ),
  ];
  if (problems.length > 0)
    return { name, verdict: "warning", detail: `${many}; ${problems.slice(0, 20).join("; ")}` };
  return { name, verdict: "passed", detail: many };
}

function told(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
