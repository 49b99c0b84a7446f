/** Killed from outside, at its system calls. */
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";
import { runCrashChild } from "./crash-child.ts";

await runCrashChild((place, options) =>
  openPosixLedger({ ...options, directory: `${process.env["CRASH_DIRECTORY"]}/${place}` }),
);
