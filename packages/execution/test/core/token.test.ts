import { mkdir, symlink, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parseToken, readTokenFile } from "../../src/index.ts";
import { testDirectory } from "../support/client.ts";
import { vectors } from "../support/vectors.ts";

test.each(vectors.tokenFiles)("vector: $name", async ({ fileBase64, valid, token }) => {
  const bytes = Buffer.from(fileBase64, "base64");
  const parsed = parseToken(bytes);
  expect("token" in parsed).toBe(valid);
  if ("token" in parsed) expect(parsed.token).toBe(token);
  const path = `${await testDirectory()}/token`;
  await writeFile(path, bytes);
  expect(await readTokenFile(path)).toMatchObject(valid ? { kind: "token", token } : { kind: "invalid" });
});

test("white space is Unicode's, in which a byte-order mark is not", () => {
  const token = "a".repeat(24);
  expect(parseToken(Buffer.from(`\u0085\u00a0${token}\u2028\u3000`))).toEqual({ token });
  expect(parseToken(Buffer.from(`${token}\ufeff`))).toHaveProperty("problem");
});

test("a file that is absent, a directory, or behind a symlink", async () => {
  const directory = await testDirectory();
  await mkdir(`${directory}/d`);
  await writeFile(`${directory}/t`, "a".repeat(24));
  await symlink("t", `${directory}/link`);
  expect(await readTokenFile(`${directory}/absent`)).toMatchObject({ kind: "unavailable" });
  expect(await readTokenFile(`${directory}/d`)).toMatchObject({ kind: "unreadable" });
  expect(await readTokenFile(`${directory}/link`)).toMatchObject({ kind: "token" });
});
