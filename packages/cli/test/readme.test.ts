import { readFileSync } from "node:fs";
import { optionsTable } from "@cellkit/daemon";
import { describe, expect, it } from "vitest";
import { bucketServeOptions } from "../src/commands/bucket-serve.ts";
import { callOptions } from "../src/commands/call.ts";
import { deployOptions } from "../src/commands/deploy.ts";
import { devOptions } from "../src/commands/dev.ts";
import { diagnoseOptions } from "../src/commands/diagnose.ts";
import { ledgerAdoptOptions } from "../src/commands/ledger-adopt.ts";
import { ledgerExportOptions } from "../src/commands/ledger-export.ts";
import { ledgerImportOptions } from "../src/commands/ledger-import.ts";
import { ledgerLsOptions } from "../src/commands/ledger-ls.ts";
import { ledgerShowOptions } from "../src/commands/ledger-show.ts";
import { ledgerSqlOptions } from "../src/commands/ledger-sql.ts";
import { ledgerVerifyOptions } from "../src/commands/ledger-verify.ts";
import { peerRotateOptions } from "../src/commands/peer-rotate.ts";
import { qualifyBucketOptions } from "../src/commands/qualify-bucket.ts";
import { qualifyExecutionsOptions } from "../src/commands/qualify-executions.ts";
import { qualifyLedgerOptions } from "../src/commands/qualify-ledger.ts";
import { roadOptions } from "../src/commands/road.ts";
import { rotateOptions } from "../src/commands/rotate.ts";
import { routerCheckOwnOptions } from "../src/commands/router-check.ts";
import { routerReconcileOwnOptions } from "../src/commands/router-reconcile.ts";
import * as everything from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

describe("the README has the options, and nothing else, of", () => {
  it.each([
    ["dev", devOptions],
    ["deploy", deployOptions],
    ["call", callOptions],
    ["diagnose", diagnoseOptions],
    ["peer rotate", peerRotateOptions],
    ["road", roadOptions],
    ["bucket serve", bucketServeOptions],
    ["qualify bucket", qualifyBucketOptions],
    ["qualify ledger", qualifyLedgerOptions],
    ["qualify executions", qualifyExecutionsOptions],
    ["rotate", rotateOptions],
    ["router check", routerCheckOwnOptions],
    ["router reconcile", routerReconcileOwnOptions],
    ["ledger ls", ledgerLsOptions],
    ["ledger show", ledgerShowOptions],
    ["ledger verify", ledgerVerifyOptions],
    ["ledger export", ledgerExportOptions],
    ["ledger import", ledgerImportOptions],
    ["ledger adopt", ledgerAdoptOptions],
    ["ledger sql", ledgerSqlOptions],
  ])("%s", (name, schema) => {
    const [, after = ""] = readme.split(`<!-- options: ${name} -->\n`);
    const [table = ""] = after.split("<!-- /options -->");
    expect(unpadded(table)).toBe(unpadded(optionsTable(schema)));
  });
});

it("the README has every error class", () => {
  const names = Object.keys(everything).filter((name) => name.endsWith("Error") && name !== "CliError");
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) expect(readme).toContain(`| \`${name}\``);
});

/** A table without what the formatter adds: cells as wide as their column, and empty lines around. */
function unpadded(table: string): string {
  return table
    .trim()
    .replaceAll(/ {2,}/g, " ")
    .replaceAll(/\| ?-+ ?(?=\|)/g, "|---");
}
