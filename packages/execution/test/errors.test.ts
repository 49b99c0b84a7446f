import { inspect } from "node:util";
import { expect, test } from "vitest";
import { lostTrouble } from "../src/core/trouble.ts";
import * as errors from "../src/errors.ts";

const cause = new Error("inner");
const options = { cause };

const rows: readonly (readonly [errors.ExecutionError, string, string, string, string, string])[] = [
  [
    new errors.ExecutionOptionError("url", "is bad", options),
    "ExecutionOptionError",
    "OPTION",
    "no",
    "never",
    "url is bad",
  ],
  [new errors.JsonError("is not JSON", options), "JsonError", "JSON", "no", "never", "is not JSON"],
  [
    new errors.ExecutionIdError("is empty", options),
    "ExecutionIdError",
    "ID",
    "no",
    "never",
    "the execution id is empty",
  ],
  [
    new errors.ExecutionRequestError("id: missing", [{ code: "missing_identity", field: "id" }], options),
    "ExecutionRequestError",
    "REQUEST",
    "no",
    "never",
    "was not sent",
  ],
  [
    new errors.CallError(lostTrouble("http://r", "reset"), options),
    "CallError",
    "ANSWER_LOST",
    "maybe",
    "same-id",
    "(reset)",
  ],
  [
    new errors.DeadlineError("run-1 has not ended", { sent: "yes", next: "operator" }, options),
    "DeadlineError",
    "DEADLINE",
    "yes",
    "operator",
    "run-1 has not ended; let an operator look",
  ],
  [
    new errors.CallAbortedError("maybe", options),
    "CallAbortedError",
    "ABORTED",
    "maybe",
    "same-id",
    "given up",
  ],
  [
    new errors.RecordRejectedError("run-1", ["its receipt has another mote"], options),
    "RecordRejectedError",
    "RECORD_REJECTED",
    "yes",
    "operator",
    "another mote",
  ],
];

test.each(rows)(
  "%s has its name, code, message, cause and what may be done",
  (error, name, code, sent, next, part) => {
    expect(error).toBeInstanceOf(errors.ExecutionError);
    expect(error).toMatchObject({ name, code: `CELLKIT_EXECUTION_${code}`, sent, next, cause });
    expect(error.message).toContain(part);
    expect(inspect(error)).toContain(name);
  },
);

test("every class is in the table", () => {
  const classes = Object.keys(errors).filter((name) => name !== "ExecutionError");
  expect(new Set(rows.map(([, name]) => name))).toEqual(new Set(classes));
});
