import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import * as errors from "../src/errors.ts";

const options = { cause: new TypeError("why") };
const key = "ab".repeat(32);
const table: readonly [string, errors.LedgerError, RegExp][] = [
  ["OPTION", new errors.LedgerOptionError("capacity is 0", options), /^capacity is 0$/],
  ["CLOSED", new errors.LedgerClosedError("/l", options), /the ledger \/l is closed: open it again/],
  [
    "UNSUPPORTED",
    new errors.LedgerUnsupportedError("/l", "it is tmpfs", options),
    /\/l cannot .*it is tmpfs/,
  ],
  [
    "MISSING",
    new errors.LedgerMissingError("/l", "it is empty", options),
    /at \/l: it is empty.*missing mount/,
  ],
  ["OWNER", new errors.OwnerChoiceError("no owner", options), /^no owner$/],
  [
    "BUSY",
    new errors.LedgerBusyError("/l", 2_000.4, options),
    /\/l was not free for 2000 ms: nothing was written/,
  ],
  [
    "CORRUPT",
    new errors.CorruptRecordError("/l", key, "it is empty", options),
    /record (ab){32} .*it is empty.*backup/,
  ],
  ["UNAVAILABLE", new errors.LedgerUnavailableError("/l", "ENOSPC", "no", options), /ENOSPC\. Nothing was/],
  [
    "NOT_RETIRABLE",
    new errors.NotRetirableError("/l", options),
    /\/l keeps its records for ever: .*retirable: true/,
  ],
  ["EXPORT", new errors.LedgerExportError("line 3 is cut", options), /line 3 is cut.*export again/],
  ["AGENT", new errors.LedgerAgentError("agent 2", "it ended", options), /^agent 2: it ended$/],
  ["CONFORMANCE", new errors.ConformanceError("count: expected 1", options), /^count: expected 1$/],
];

describe("errors", () => {
  it.each(table)("%s has its code, its name, a message that helps, and its cause", (what, error, message) => {
    expect(error.code).toBe(`CELLKIT_LEDGER_${what}`);
    expect(error.name).toBe(error.constructor.name);
    expect(error.message).toMatch(message);
    expect(error.cause).toBe(options.cause);
    expect(error).toBeInstanceOf(errors.LedgerError);
  });

  it("a missing ledger is looked for where it would lie, and nothing else", () => {
    const at = (ledger: string) => new errors.LedgerMissingError(ledger, "it is not there");
    expect(at("/mnt/l").message).toMatch(/a missing mount .* without requireExisting$/);
    expect(at("s3://cells/l").problem).toMatch(/a wrong bucket, .* run old work again$/);
    expect(at("postgresql://h:5432/d#l").message).not.toMatch(/mount/);
  });

  it("a missing mark beside records is to be left anew, and no ledger is to be created", () => {
    const error = new errors.LedgerMissingError("/l", "a file ledger.json", { hasRecords: true });
    expect(error.problem).toMatch(
      /^there are records at \/l, but no mark .*ledger\.json.*: cellkit ledger adopt leaves one$/,
    );
    expect(error.message).toMatch(/To mark it, open it once without requireExisting$/);
  });

  it("say whether a claim may have been recorded", () => {
    const error = new errors.LedgerUnavailableError("/l", "the connection was cut", "maybe");
    expect(error.recorded).toBe("maybe");
    expect(error.message).toMatch(/may be there now; the same call, made again, settles it/);
  });

  it("are all in the README, and nothing else is", async () => {
    const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
    const listed = [...readme.matchAll(/^\| `(CELLKIT_LEDGER_[A-Z_]+)` +\|/gm)].map(([, code]) => code);
    expect(listed.sort()).toEqual(table.map(([, { code }]) => code).sort());
  });

  it("have every class in this table", () => {
    const classes = Object.values(errors).filter((value) => value !== errors.LedgerError);
    expect(new Set(table.map(([, error]) => error.constructor))).toEqual(new Set(classes));
  });
});
