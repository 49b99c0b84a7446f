import { exitCodeOf } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { CertificateError, CheckFailedError, EdgeError } from "../src/index.ts";

const cause = new TypeError("below");

it.each([
  [
    new CertificateError("/tls.crt", "is not a PEM certificate", { cause }),
    "CertificateError",
    "CELLKIT_EDGE_CERTIFICATE",
    "operator TLS certificate/key unavailable: /tls.crt is not a PEM certificate",
  ],
  [
    new CheckFailedError(["one", "two"], { cause }),
    "CheckFailedError",
    "CELLKIT_EDGE_CHECK_FAILED",
    "the check failed: one; two",
  ],
])(
  "%s has a name, a code, a message and its cause, and ends the process with 1",
  (error, name, code, message) => {
    expect(error).toBeInstanceOf(EdgeError);
    expect(error).toMatchObject({ name, code, message, cause });
    expect(exitCodeOf(error)).toBe(1);
  },
);

it("what was wrong can be read from their fields", () => {
  expect(new CertificateError("/tls.crt", "x").path).toBe("/tls.crt");
  expect(new CheckFailedError(["one", "two"]).problems).toEqual(["one", "two"]);
});
