import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  type LedgerConfig,
  ledgerAddress,
  openRouterLedger,
  openRouterLedgerReader,
} from "../src/router-ledger.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "router-ledger-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const config: LedgerConfig = {
  requireExistingLedger: false,
  ledgerLockMs: 60_000,
  trustDirectoryTimes: false,
  region: "us-east-1",
} as LedgerConfig;

it.each([
  [{ ledger: "s3://bucket/plane" }, "s3://bucket/plane"],
  [{ ownershipDir: "/var/lib/celln/ownership" }, "/var/lib/celln/ownership"],
  // The original's flag is a directory, whatever it looks like.
  [{ ownershipDir: "s3:odd" }, "./s3:odd"],
])("the ledger of %j is at %s", (options, expected) => {
  expect(ledgerAddress({ ...config, ...options } as LedgerConfig)).toBe(expected);
});

it("a directory's ledger has its capacity, and tells its count", async () => {
  const counts: number[] = [];
  const options = { ...config, ownershipDir: directory, ledgerCapacity: 7 };
  await using ledger = await openRouterLedger(options, (event) => {
    if (event.kind === "scan") counts.push(event.count);
  });
  expect(ledger.capacity).toBe(7);
  expect(counts).toEqual([0]);
});

it("a ledger that must be there and is not opens nothing, and the advice is one for flags", async () => {
  const options = { ...config, ownershipDir: join(directory, "missing"), requireExistingLedger: true };
  for (const open of [
    () => openRouterLedger(options, () => undefined),
    () => openRouterLedgerReader(options),
  ]) {
    const error = (await open().catch((cause: unknown) => cause)) as Error;
    expect(error).toMatchObject({
      code: "CELLKIT_ROUTER_LEDGER_ABSENT",
      cause: { code: "CELLKIT_LEDGER_MISSING" },
    });
    expect(error.message).toMatch(/missing.*start one router without --require-existing-ledger$/);
    expect(error.message).not.toMatch(/requireExisting/);
  }
});

it("records without a mark are to be adopted, and no new ledger is spoken of", async () => {
  await writeFile(join(directory, `${"ab".repeat(32)}.json`), "{}");
  const options = { ...config, ownershipDir: directory, requireExistingLedger: true };
  const error = (await openRouterLedger(options, () => undefined).catch((cause: unknown) => cause)) as Error;
  expect(error).toMatchObject({ code: "CELLKIT_ROUTER_LEDGER_ABSENT" });
  expect(error.message).toMatch(/^there are records at .*: cellkit ledger adopt leaves one; one router that/);
});

it.each(["postgres://h:no-port/d", "s3://B_A_D", "ftp://h"])(
  "%s is a configuration that does not fit, for whoever opens it or looks at it",
  async (ledger) => {
    const options = { ...config, ledger };
    for (const open of [
      () => openRouterLedger(options, () => undefined),
      () => openRouterLedgerReader(options),
    ])
      await expect(open()).rejects.toMatchObject({ code: "CELLKIT_ROUTER_LEDGER_PLACE", exitCode: 2 });
  },
);
