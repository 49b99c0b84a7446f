// `cellkit qualify ledger`: the command with its own processes. What each check finds is the library's to show.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { qualifyLedgerOptions } from "../src/commands/qualify-ledger.ts";
import { freePorts } from "../src/free-ports.ts";
import { cellkitCommand } from "../src/index.ts";
import { Command, run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await TemporaryDirectory.make();
});
afterEach(() => directory.remove());

describe("a ledger's place is tried out", () => {
  it("a directory in memory: JSON with every check, code 1, nothing left behind", async () => {
    const memory = await mkdtemp("/dev/shm/cellkit-qualify-test-");
    try {
      const { code, found, stderr } = await qualifyJson(memory);
      expect(found).toMatchObject({ url: memory, verdict: "violated" });
      for (const check of found.checks) expect(check).toEqual(shape);
      const failed = found.checks.find(({ result }) => result === "failed");
      expect(failed?.name).toBe("file-system");
      expect(failed?.detail).toContain("mounted at /dev/shm");
      expect(stderr).toEqual([]);
      expect(code).toBe(1);
      expect(await readdir(memory)).toEqual([]);
    } finally {
      await rm(memory, { recursive: true });
    }
  });

  it.skipIf(inject("size") !== "long")("a sound directory: code 0 (long only)", async () => {
    const { code, found } = await qualifyJson(directory.path);
    expect(found.checks.filter(({ required, result }) => required && result !== "passed")).toEqual([]);
    expect(found.verdict).toBe("qualified");
    expect(code).toBe(0);
    expect(await readdir(directory.path)).toEqual([]);
  });

  it("a peer with another secret cannot be asked: code 2, and neither side shows the secret", async () => {
    const [right, wrong] = ["r".repeat(32), "w".repeat(32)];
    await writeFile(`${directory.path}/right`, right, { mode: 0o600 });
    await writeFile(`${directory.path}/wrong`, wrong, { mode: 0o600 });
    const url = directory.path;
    const [port = 0] = await freePorts(1);
    const listen = ["--agent", "--listen", `127.0.0.1:${port}`, "--secret-file", `${directory.path}/right`];
    const agent = new Command(["qualify", "ledger", url, ...listen]);
    await agent.said("an agent for qualifications");
    const asked = await run([
      ...["qualify", "ledger", url, "--peer", `127.0.0.1:${port}`],
      ...["--secret-file", `${directory.path}/wrong`],
    ]);
    expect(asked.code).toBe(2);
    expect(asked.stderr.join()).toMatch(/same secret/);
    await agent.said("another secret");
    agent.process.signal("SIGTERM");
    const { code, stderr } = await agent.outcome();
    expect(code).toBe(0);
    for (const line of [...stderr, ...asked.stderr, ...asked.stdout]) {
      expect(line).not.toContain(right);
      expect(line).not.toContain(wrong);
    }
  });

  it("a directory that is not there is not made: code 2, also in JSON", async () => {
    const missing = `${directory.path}/not-mounted`;
    const { code, found, stderr } = await qualifyJson(missing);
    expect(code).toBe(2);
    expect(found.verdict).toBe("unknown");
    expect(stderr.join()).toContain("there is no such directory");
    expect(await readdir(directory.path)).toEqual([]);
  });

  it("Ctrl-C, and a reader that has seen enough, end it with a word, and leave no probe", async () => {
    const interrupted = new Command(["qualify", "ledger", directory.path]);
    await interrupted.printed(2);
    interrupted.process.signal("SIGINT");
    const { code, stderr } = await interrupted.outcome();
    expect(code).toBe(130);
    expect(stderr.join()).toContain("ended before it could tell; its probe is removed");
    const { command, args } = cellkitCommand();
    const piped = spawn(command, [...args, "qualify", "ledger", directory.path], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    piped.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await once(piped.stdout, "data");
    piped.stdout.destroy();
    const [ended] = await once(piped, "close");
    expect(ended).toBe(130);
    expect(said).not.toMatch(/EPIPE/);
    expect(await readdir(directory.path)).toEqual([]);
  });

  it("a secret file that is not there, or is too short: code 2 for an agent, too", async () => {
    await writeFile(`${directory.path}/short`, "hunter2", { mode: 0o600 });
    const [none, short] = await Promise.all(
      ["none", "short"].map((name) => {
        const listen = ["--agent", "--listen", "127.0.0.1:0", "--secret-file", `${directory.path}/${name}`];
        return run(["qualify", "ledger", directory.path, ...listen]);
      }),
    );
    expect(none).toMatchObject({ code: 2 });
    expect(short).toMatchObject({ code: 2, stderr: [expect.stringContaining("32 are needed")] });
    expect(short?.stderr.join()).not.toContain("hunter2");
  });

  it.each([
    [{ listen: "127.0.0.1:1", secretFile: "s" }, /is for --agent/],
    [{ peer: ["127.0.0.1:1"] }, /needed with --peer/],
    [{ peer: ["nowhere"], secretFile: "s" }, /HOST:PORT/],
    [{ agent: true, peer: ["127.0.0.1:1"], secretFile: "s" }, /not for --agent/],
    [{ processes: 1 }, />=2/],
  ])("%j is refused", (options, message) => {
    const parsed = qualifyLedgerOptions.safeParse({ url: directory.path, ...options });
    expect(parsed.error?.message).toMatch(message);
  });
});

const shape = {
  name: expect.stringMatching(/^[a-z-]+$/),
  result: expect.stringMatching(/^(passed|failed|not-tested)$/),
  detail: expect.any(String),
  ms: expect.any(Number),
  required: expect.any(Boolean),
};

interface Found {
  verdict: string;
  checks: Array<{ name: string; result: string; detail: string; required: boolean }>;
}

async function qualifyJson(url: string): Promise<{ code: number | null; found: Found; stderr: string[] }> {
  const { code, stdout, stderr } = await run(["qualify", "ledger", url, "--processes", "2", "--json"]);
  return { code, stderr, found: JSON.parse(stdout.join()) };
}
