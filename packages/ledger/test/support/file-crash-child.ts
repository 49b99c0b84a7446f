import { runCrashChild } from "./crash-child.ts";
import { openFileLedger } from "./file-ledger.ts";

await runCrashChild((place, options, pass) =>
  openFileLedger(`${process.env["CRASH_DIRECTORY"]}/${place}`, options, {
    pass,
    isHasty: process.env["CRASH_HASTY"] === "1",
  }),
);
