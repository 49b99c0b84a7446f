import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";
import { crashRounds } from "../support/crash-rounds.ts";
import { PATIENT_LOCK_MS, temporaryDirectory } from "../support/posix-place.ts";
import { hasStrace, StraceCrashes } from "../support/strace.ts";

const crashCount = inject("size") === "long" ? 1_000 : 100;

it.skipIf(!hasStrace() && process.env["CI"] === undefined)(
  "killed before any system call, a ledger in a directory has one owner an id and has lost no claim (needs: strace, apt-get install strace)",
  async () => {
    const directory = await temporaryDirectory();
    const strace = new StraceCrashes(directory);
    const done = await crashRounds(
      {
        name: "a directory",
        child: new URL("../support/posix-crash-child.ts", import.meta.url),
        open: (place, options) =>
          openPosixLedger({ ...options, directory: join(directory, place), lockTimeoutMs: PATIENT_LOCK_MS }),
        wrap: strace.wrap,
        countPoints: strace.countPoints,
        env: { CRASH_DIRECTORY: directory },
        capacity: true,
        lateWrites: false,
      },
      { crashCount, seed: inject("seed") },
    );
    expect(done.crashCount).toBeGreaterThanOrEqual(crashCount);
    for (const count of Object.values(done.points)) expect(count).toBeGreaterThan(25);
  },
  1_800_000,
);
