import { access, readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { dispatcher, testBackendToken, tokenFile } from "../src/index.ts";
import { call, failureOf } from "./support/call.ts";

it("a token file can be written anew, and is gone afterwards", async () => {
  const file = await tokenFile("first");
  expect(await readFile(file.path, "utf8")).toBe("first");
  await file.write("second");
  expect(await readFile(file.path, "utf8")).toBe("second");
  await file.close();
  await file.close();
  await failureOf(access(file.path));
});

it("a dispatcher reads its token file for each call, and says when it cannot use it", async () => {
  await using file = await tokenFile(testBackendToken);
  await using it = await dispatcher({ tokenFile: file.path });
  const status = async () => (await call(it.origin, "GET", "/v1/node")).status;
  expect(await status()).toBe(200);
  await file.write("another-backend-token-for-tests");
  expect(await status()).toBe(401);
  await file.write("short");
  expect(await call(it.origin, "GET", "/v1/node")).toMatchObject({
    status: 503,
    body: { error: "dispatcher credential unavailable" },
  });
  await file.close();
  expect(await status()).toBe(503);
});
