// `cellkit ledger …` when what it reads, and what it writes to, is not as it should be.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { open, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { openLedger } from "@cellkit/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { cellkitCommand } from "../src/index.ts";
import { Command, type Outcome, run } from "./support/command.ts";
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

/** Whether a process reads a file. */
async function isOpen(pid: number | undefined, file: string): Promise<boolean> {
  const names = await readdir(`/proc/${pid}/fd`);
  const files = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")));
  return files.includes(file);
}

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

describe("import", () => {
  it("of a file that is not whole makes no ledger", async () => {
    const { stdout } = await run(["ledger", "export", url, "-"]);
    await writeFile(path("cut.ndjson"), `${stdout.slice(0, -1).join("\n")}\n`);
    const imported = await run(["ledger", "import", path("none"), path("cut.ndjson")]);
    expect(imported).toMatchObject({ code: 1, stderr: [expect.stringContaining("it was cut off")] });
    expect(await readdir(directory.path)).not.toContain("none");
  });

  it("a pipe is refused, and a signal ends the reading of a file that is long", async () => {
    const pipe = path("pipe");
    execFileSync("mkfifo", [pipe]);
    const refused = await run(["ledger", "import", path("none"), pipe]);
    expect(refused).toMatchObject({ code: 2, stderr: [expect.stringContaining("- <")] });
    await rm(pipe);
    const file = await open(path("long"), "w");
    const header = { format: "cellkit-ledger-export", version: 1, ledger: "executions", ledgerId: "" };
    await file.writeFile(`${JSON.stringify(header)}\n`);
    for (let at = 0; at < 200_000; at += 5_000) {
      const keys = Array.from({ length: 5_000 }, (_, one) => (at + one).toString(16).padStart(64, "0"));
      const lines = keys.map((key) => `{"key":"${key}","backend":"http://a","body_hash":"x"}\n`);
      await file.writeFile(lines.join(""));
    }
    await file.close();
    let outcome: Outcome | undefined;
    // Where this test is paused right here, the command comes to the end first: the file is cut off there, which has another code.
    for (let turn = 0; turn < 5 && outcome?.code !== 130; turn += 1) {
      const command = new Command(["ledger", "import", path("none"), path("long")]);
      const { pid } = command.process;
      await until("reading of the file", async () => {
        if (command.process.exit !== undefined) return true;
        return await isOpen(pid, path("long")).catch(() => false);
      });
      command.process.signal("SIGINT");
      outcome = await command.outcome();
    }
    expect(outcome).toMatchObject({ code: 130, stderr: [] });
    expect(await readdir(directory.path)).not.toContain("none");
  });
});

describe("what lies in a ledger is shown, and not obeyed by the terminal", () => {
  it("in every command that shows it, also as JSON", async () => {
    const place = path("hostile");
    await (await openLedger(place)).close();
    const key = "ab".repeat(32);
    const hash = JSON.stringify("\u001b]0;x\u0007\u009b2J");
    await writeFile(`${place}/${key}.json`, `{"version":1,"backend":"http://a","body_hash":${hash}}`);
    await writeFile(`${place}/${"cd".repeat(32)}.json`, '{"version":1,"\u009b":"x"}');
    await writeFile(`${place}/x\u001b[2J\u0085\u202ey`, "");
    const shown = await Promise.all(
      [
        ["ls", place],
        ["ls", place, "--json"],
        ["show", place, "--key", key],
        ["show", place, "--key", key, "--json"],
        ["show", place, "--key", "cd".repeat(32)],
        ["verify", place],
        ["verify", place, "--json"],
        ["export", place, path("hostile.ndjson")],
      ].map((args) => run(["ledger", ...args])),
    );
    const lines = shown.flatMap(({ stdout, stderr }) => [...stdout, ...stderr]);
    expect(lines.filter((line) => /[^\x20-\x7e]/.test(line))).toEqual([]);
    expect(shown[2]?.stdout[2]).toBe("body      \\u001b]0;x\\u0007\\u009b2J");
    expect(JSON.parse(shown[3]?.stdout[0] ?? "")).toMatchObject({ bodyHash: JSON.parse(hash) });
    expect(lines.join()).toContain("x\\u001b[2J\\u0085\\u202ey");
  });
});
