import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { ledgerConformance } from "../../src/conformance/index.ts";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";
import { PATIENT_LOCK_MS } from "../support/posix-place.ts";

const top = mkdtempSync(join(tmpdir(), "cellkit-ledger-"));
afterAll(() => rmSync(top, { recursive: true }));

describe("a ledger in a directory keeps the rules of every ledger:", () => {
  const cases = ledgerConformance(
    (place, options) =>
      openPosixLedger({ ...options, directory: join(top, place), lockTimeoutMs: PATIENT_LOCK_MS }),
    { plant: (place, key, bytes) => writeFile(join(top, place, `${key}.json`), bytes) },
  );
  for (const { name, skip, run } of cases) it.skipIf(skip !== undefined)(name, run);
});
