// `cellkit ledger …` when what it reads, and what it writes to, is not as it should be.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { openLedger } from "@cellkit/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cellkitCommand } from "../src/index.ts";

import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
let url: string;
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
  url = `${directory.path}/ownership`;
  const ledger = await openLedger(url);
  const ids = Array.from({ length: 40 }, (_, at) => `run-${at}`);
  await Promise.all(ids.map((id) => ledger.claim(id, `body of ${id}`, async () => "http://10.0.0.1:8787")));
  await ledger.close();
});
afterAll(() => directory.remove());
const path = (name: string): string => `${directory.path}/${name}`;

describe("what cannot be written is never told as done", () => {
  it("an export that the disk has no room for leaves no file", async () => {
    const { command, args } = cellkitCommand();
    // Writes beyond 4,096 bytes of a file are cut short, and then fail, as on a disk that fills up.
    const child = spawn(
      "sh",
      [
        "-c",
        'ulimit -f 8; trap "" XFSZ; exec "$@"',
        "sh",
        command,
        ...args,
        "ledger",
        "export",
        url,
        path("cut"),
      ],
      { stdio: ["ignore", "ignore", "pipe"], env: { PATH: process.env["PATH"] } },
    );
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    expect(await once(child, "close")).toEqual([1, null]);
    expect(said).toMatch(/EFBIG/);
    expect((await readdir(directory.path)).filter((name) => name.startsWith("cut"))).toEqual([]);
  });
});
