import { expect, test } from "vitest";
import { FramingError, ListenError, OptionError, SpliceError } from "../src/errors.ts";

const cause = Object.assign(new Error("inner"), { code: "EADDRINUSE" });

test.each([
  [new FramingError("a rule", { cause }), "FramingError", "CELLKIT_SPLICE_FRAMING", "a rule"],
  [
    new ListenError("127.0.0.1", 80, { cause }),
    "ListenError",
    "CELLKIT_SPLICE_LISTEN",
    "127.0.0.1:80 (EADDRINUSE)",
  ],
  [new OptionError("lingerMs", "is -1", { cause }), "OptionError", "CELLKIT_SPLICE_OPTION", "lingerMs is -1"],
])("%s has its name, code, message and cause", (error, name, code, part) => {
  expect(error).toBeInstanceOf(SpliceError);
  expect(error).toMatchObject({ name, code, cause });
  expect(error.message).toContain(part);
});

test.each([
  ["EADDRINUSE", "choose another port"],
  ["EACCES", "above 1023"],
  ["EADDRNOTAVAIL", "an address of this machine"],
])("a listen error with %s says what to do", (code, advice) => {
  const error = new ListenError("h", 1, { cause: Object.assign(new Error("x"), { code }) });
  expect(error.message).toContain(advice);
});

test("a listen error without a known cause says so", () => {
  expect(new ListenError("h", 1).message).toContain("unknown error");
});
