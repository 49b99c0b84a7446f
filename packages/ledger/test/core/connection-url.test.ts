import { expect, it } from "vitest";
import { checkConnectionUrl } from "../../src/core/connection-url.ts";

it.each([
  "postgres://user:p%2Fw@host:5432/db",
  "postgresql://host/db?user=a@b",
  "postgres://%2Fvar%2Frun%2Fpostgresql/db",
  "postgres:///db",
  "/var/run/postgresql db",
])("%s is taken", (url) => {
  expect(() => checkConnectionUrl(url)).not.toThrow();
});

it.each([
  ["a slash in the password", "postgres://u:12/hunter2@host/db"],
  ["a question mark in the password", "postgres://u:12?hunter2@host/db"],
  ["a hash in the password", "postgres://u:12#hunter2@host/db"],
  ["no slashes", "postgres:u:hunter2@host"],
  ["a line break in the password", "postgres://u:12/\nhunter2@host/db"],
])("%s is refused, and not shown", (_, url) => {
  expect(() => checkConnectionUrl(url)).toThrow(expect.objectContaining({ code: "CELLKIT_LEDGER_OPTION" }));
  expect(() => checkConnectionUrl(url)).not.toThrow(/hunter2/);
});
