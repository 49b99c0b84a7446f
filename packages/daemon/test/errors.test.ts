import { expect, it } from "vitest";
import * as everything from "../src/index.ts";
import {
  BodyTooLargeError,
  CertificateFileError,
  ConfigError,
  DaemonError,
  DaemonProcessError,
  ListenError,
  MetricNameError,
  SchemaError,
  SecretFileError,
  StepTimeoutError,
  StopSequenceError,
} from "../src/index.ts";

const cause = new TypeError("the reason");
const table: Array<[DaemonError, name: string, code: string, message: RegExp]> = [
  [
    new ConfigError("toy", [{ where: "--a", message: "is bad" }], { cause }),
    "ConfigError",
    "CELLKIT_DAEMON_CONFIG",
    /^toy: --a: is bad\nRun `toy --help` for all options\.$/,
  ],
  [
    new SchemaError("a", "is odd", { cause }),
    "SchemaError",
    "CELLKIT_DAEMON_SCHEMA",
    /option "a" of the schema: is odd/,
  ],
  [
    new MetricNameError("m", "is odd", { cause }),
    "MetricNameError",
    "CELLKIT_DAEMON_METRIC_NAME",
    /metric "m": is odd/,
  ],
  [
    new SecretFileError("/k", "is empty", { cause }),
    "SecretFileError",
    "CELLKIT_DAEMON_SECRET_FILE",
    /secret file \/k: is empty/,
  ],
  [
    new CertificateFileError("/c", "is odd", { cause }),
    "CertificateFileError",
    "CELLKIT_DAEMON_CERTIFICATE",
    /^the certificate cannot be used: \/c is odd$/,
  ],
  [
    new ListenError("h", 1, { cause }),
    "ListenError",
    "CELLKIT_DAEMON_LISTEN",
    /cannot listen on h:1: the reason; choose another/,
  ],
  [
    new BodyTooLargeError(9, { cause }),
    "BodyTooLargeError",
    "CELLKIT_DAEMON_BODY_TOO_LARGE",
    /longer than 9 bytes/,
  ],
  [
    new StopSequenceError("s", { cause }),
    "StopSequenceError",
    "CELLKIT_DAEMON_STOP_SEQUENCE",
    /"s" was added after/,
  ],
  [
    new StepTimeoutError("s", 9, { cause }),
    "StepTimeoutError",
    "CELLKIT_DAEMON_STEP_TIMEOUT",
    /"s" did not end within 9 ms/,
  ],
  [
    new DaemonProcessError("celld", "ended (code 2)", ["bad flag"], { cause }),
    "DaemonProcessError",
    "CELLKIT_DAEMON_PROCESS",
    /^celld ended \(code 2\); its last lines:\n {2}bad flag$/,
  ],
];

it.each(table)("%s has its name, code, message and cause", (error, name, code, message) => {
  expect(error).toBeInstanceOf(DaemonError);
  expect(error).toMatchObject({ name, code, cause });
  expect(error.message).toMatch(message);
});

it("the table has every error class of the package", () => {
  const classes = Object.values(everything).filter(
    (value) => typeof value === "function" && value.prototype instanceof DaemonError,
  );
  expect(new Set(table.map(([error]) => error.constructor))).toEqual(new Set(classes));
});

it.each([
  ["EADDRINUSE", /the port is taken/],
  ["EACCES", /may not open that port/],
  ["EADDRNOTAVAIL", /does not belong to this machine/],
  ["ENOTFOUND", /does not resolve/],
  ["EWHATEVER", /EWHATEVER; choose another address/],
])("a listener refused with %s says what to do", (code, advice) => {
  expect(new ListenError("h", 1, { cause: Object.assign(new TypeError("x"), { code }) }).message).toMatch(
    advice,
  );
});
