import { writeFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { readTokenFile } from "../src/index.ts";
import { tokenFile } from "./support/client.ts";

vi.mock("node:fs/promises", async (load) => {
  const real = await load<typeof import("node:fs/promises")>();
  return {
    ...real,
    async open(...given: Parameters<typeof real.open>) {
      const file = await real.open(...given);
      const close = file.close.bind(file);
      file.close = async () => {
        await close();
        throw Object.assign(new TypeError("the network file system is gone"), { code: "EIO" });
      };
      return file;
    },
  };
});

test("a token that was read is taken, though its file cannot be closed", async () => {
  const path = await tokenFile("a-token-of-24-characters-or-more\n");
  expect(await readTokenFile(path)).toEqual({ kind: "token", token: "a-token-of-24-characters-or-more" });
  await writeFile(path, "short");
  expect(await readTokenFile(path)).toMatchObject({ kind: "invalid" });
});

test("a path that no file can have is a fault, not an exception", async () => {
  expect(await readTokenFile("a\0b")).toMatchObject({ kind: "unavailable" });
});
