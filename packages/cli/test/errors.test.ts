import { expect, it } from "vitest";
import * as everything from "../src/index.ts";
import {
  CallFailedError,
  CallInputError,
  CliError,
  HookError,
  IdFileError,
  ImportFileError,
  KeyFileError,
  LedgerAbsentError,
  LedgerPlaceError,
  LocalFleetError,
  ProcessEndedError,
  ProcessStartError,
  ProjectError,
  QualificationInputError,
  RotationWaitError,
  RouterAccessError,
  StepCommandError,
  TokenFilesError,
  TokenRotationError,
  WatchError,
} from "../src/index.ts";

const cause = new TypeError("the reason");
const table: Array<[CliError, name: string, code: string, message: RegExp]> = [
  [
    new LocalFleetError("node-9 is not a node of this fleet", { cause }),
    "LocalFleetError",
    "CELLKIT_CLI_LOCAL_FLEET",
    /^node-9 is not a node of this fleet$/,
  ],
  [
    new ProcessStartError("node-1", "the port is taken", { cause }),
    "ProcessStartError",
    "CELLKIT_CLI_PROCESS_START",
    /^node-1 did not start: the port is taken$/,
  ],
  [
    new ProcessEndedError("bucket", "SIGKILL", { cause }),
    "ProcessEndedError",
    "CELLKIT_CLI_PROCESS_ENDED",
    /^bucket ended: SIGKILL; start this command again$/,
  ],
  [
    new ProjectError("/a has no wrangler.jsonc", { cause }),
    "ProjectError",
    "CELLKIT_CLI_PROJECT",
    /^\/a has no wrangler\.jsonc$/,
  ],
  [
    new WatchError("/a", "ENOSPC", { cause }),
    "WatchError",
    "CELLKIT_CLI_WATCH",
    /^\/a cannot be watched \(ENOSPC\): raise .*, or give --no-watch$/,
  ],
  [
    new CallInputError("--data @x: the file cannot be read", { cause }),
    "CallInputError",
    "CELLKIT_CLI_CALL_INPUT",
    /^--data @x: the file cannot be read$/,
  ],
  [
    new CallFailedError("no whole answer; the call may have run", { cause }),
    "CallFailedError",
    "CELLKIT_CLI_CALL_FAILED",
    /^no whole answer; the call may have run$/,
  ],
  [
    new KeyFileError("/a/key", { cause }),
    "KeyFileError",
    "CELLKIT_CLI_KEY_FILE",
    /^\/a\/key holds no fleet key; give it the object fleet\/peer-auth\.json/,
  ],
  [
    new LedgerPlaceError("no ledger lies at ftp", { cause }),
    "LedgerPlaceError",
    "CELLKIT_CLI_LEDGER_PLACE",
    /^no ledger lies at ftp$/,
  ],
  [
    new LedgerAbsentError("no ledger was ever created at /l", { cause }),
    "LedgerAbsentError",
    "CELLKIT_CLI_LEDGER_ABSENT",
    /^no ledger was ever created at \/l$/,
  ],
  [
    new ImportFileError("/a/b", "ENOENT", { cause }),
    "ImportFileError",
    "CELLKIT_CLI_IMPORT_FILE",
    /^\/a\/b cannot be read \(ENOENT\): give what cellkit ledger export wrote/,
  ],
  [
    new IdFileError("/a/ids", "ENOENT", { cause }),
    "IdFileError",
    "CELLKIT_CLI_ID_FILE",
    /^\/a\/ids gives no ids \(ENOENT\)$/,
  ],
  [
    new QualificationInputError("a.json is no execution request", { cause }),
    "QualificationInputError",
    "CELLKIT_CLI_QUALIFICATION_INPUT",
    /^a\.json is no execution request$/,
  ],
  [
    new HookError("kill-node", "code 7", { cause }),
    "HookError",
    "CELLKIT_CLI_HOOK",
    /^the command of --kill-node ended with code 7: what it had to do was not done/,
  ],
  [
    new TokenRotationError("backend", [{ place: "http://a", reason: "does not follow" }], { cause }),
    "TokenRotationError",
    "CELLKIT_CLI_TOKEN_ROTATION",
    /^the rotation stays at backend: http:\/\/a does not follow; mend this, then run the same command again$/,
  ],
  [
    new TokenFilesError("c cannot be read (ENOENT)", { cause }),
    "TokenFilesError",
    "CELLKIT_CLI_TOKEN_FILES",
    /^c cannot be read \(ENOENT\); nothing was rotated$/,
  ],
  [
    new RouterAccessError("ca cannot be read (ENOENT)", { cause }),
    "RouterAccessError",
    "CELLKIT_CLI_ROUTER_ACCESS",
    /^ca cannot be read \(ENOENT\)$/,
  ],
  [
    new StepCommandError("backend", "code 7", { cause }),
    "StepCommandError",
    "CELLKIT_CLI_STEP_COMMAND",
    /^the command for backend ended with code 7: see its own words above/,
  ],
  [
    new RotationWaitError("accept", [{ node: "a", reason: "does not follow" }], 5_000, { cause }),
    "RotationWaitError",
    "CELLKIT_CLI_ROTATION_WAIT",
    /^the rotation stays at accept after 5 s: a does not follow; stop or mend these, then run the same command again$/,
  ],
];

it.each(table)("%s has its name, code, message and cause", (error, name, code, message) => {
  expect(error).toBeInstanceOf(CliError);
  expect(error).toMatchObject({ name, code, cause });
  expect(error.message).toMatch(message);
});

it("the table has every error class of the package", () => {
  const classes = Object.values(everything).filter(
    (value) => typeof value === "function" && value.prototype instanceof CliError,
  );
  expect(new Set(table.map(([error]) => error.constructor))).toEqual(new Set(classes));
});

it("a project that does not fit ends a command with 2, as a further try cannot help", () => {
  expect(new ProjectError("x").exitCode).toBe(2);
});

it("a key file that cannot be read is told with the reason", () => {
  const error = new KeyFileError("/a/key", { reason: "secret file /a/key: does not exist", cause });
  expect(error.message).toBe("--key-file: secret file /a/key: does not exist");
  expect(error.cause).toBe(cause);
});
