// `cellkit router`: the commands with a plane of stand-ins. What each check finds is the library's to show.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { openPosixLedger } from "@cellkit/ledger";
import { dispatcher, type ScriptedDispatcher } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { cellkitCommand } from "../src/index.ts";
import { run } from "./support/command.ts";
import { TemporaryDirectory } from "./support/project.ts";

const secrets = ["client-token-of-this-plane", "backend-token-of-this-plane"] as const;
let directory: TemporaryDirectory;
let node: ScriptedDispatcher;
let flags: string[];
beforeEach(async () => {
  directory = await TemporaryDirectory.make();
  node = await dispatcher({ token: secrets[1], node: { name: "node-a" } });
  const path = (name: string) => join(directory.path, name);
  await writeFile(path("client"), secrets[0]);
  await writeFile(path("backend"), secrets[1]);
  flags = [
    "--client-token-file",
    path("client"),
    "--token-file",
    path("backend"),
    "--ledger",
    path("ledger"),
  ];
  flags.push("--backends", node.origin);
  await using ledger = await openPosixLedger({ directory: path("ledger") });
  await ledger.claim("run-1", "{}", async () => node.origin);
  await ledger.claim("run-2", "{}", async () => node.origin);
});
afterEach(async () => {
  await node.close();
  await directory.remove();
});

describe("router check", () => {
  it("a sound plane: a line for each check, code 0, no token shown", async () => {
    const { code, stdout, stderr } = await run(["router", "check", ...flags]);
    expect(stderr).toEqual([]);
    expect(stdout.join("\n")).toMatch(/^passed +tokens: /);
    expect(stdout.at(-1)).toMatch(/^passed +backend http:.*: node-a .*same each of 5 times$/);
    expect(code).toBe(0);
    for (const secret of secrets) expect(stdout.join("\n")).not.toContain(secret);
  });

  it("something failed: JSON with every check, code 1", async () => {
    await writeFile(join(directory.path, "client"), secrets[1]);
    const { code, stdout } = await run(["router", "check", ...flags, "--json"]);
    const found = JSON.parse(stdout.join()) as {
      verdict: string;
      checks: Array<{ name: string; verdict: string }>;
    };
    expect(found.verdict).toBe("failed");
    expect(found.checks.filter(({ verdict }) => verdict === "failed").map(({ name }) => name)).toEqual([
      "tokens",
    ]);
    expect(code).toBe(1);
  });

  it("a ledger that this user could not make fails, as root's directory does for a router of another user: code 1", async () => {
    await chmod(directory.path, 0o555);
    const { command, args } = cellkitCommand();
    const ledger = ["--ledger", join(directory.path, "new", "ledger")];
    const child = spawn(
      command,
      [...args, "router", "check", ...flags.slice(0, 4), ...ledger, ...flags.slice(6)],
      {
        stdio: ["ignore", "pipe", "inherit"],
        // Root may write everywhere.
        ...(process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}),
      },
    );
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    const [code] = await once(child, "close");
    await chmod(directory.path, 0o755);
    expect(lines).toContainEqual(
      expect.stringMatching(/^failed +ledger: there is none, and this user cannot make it: EACCES/),
    );
    expect(code).toBe(1);
  });

  it("flags that the router would refuse are refused: code 2", async () => {
    const { code, stderr } = await run(["router", "check", ...flags, "--ownership-dir", "/nowhere"]);
    expect(stderr.join("\n")).toContain("exactly one is needed");
    expect(code).toBe(2);
  });
});

describe("router reconcile", () => {
  it("what is outstanding is printed, and the records whose ids were not given are counted: code 1", async () => {
    await writeFile(join(directory.path, "ids"), "run-1\n\nrun-3\r\n");
    const { code, stdout, stderr } = await run([
      "router",
      "reconcile",
      join(directory.path, "ids"),
      ...flags,
    ]);
    expect(stdout).toEqual([expect.stringMatching(/^lost +run-1 {2}/)]);
    expect(stderr).toEqual([
      "1 of 2 runs are outstanding",
      `1 further record belongs to ${node.origin}: no id for it was given, and nobody can tell one`,
    ]);
    expect(code).toBe(1);
  });

  it("nothing outstanding: code 0, and with --all and --json every run and a summary", async () => {
    await writeFile(join(directory.path, "ids"), "run-3");
    const args = ["router", "reconcile", join(directory.path, "ids"), ...flags, "--all", "--json"];
    const { code, stdout } = await run(args);
    expect(stdout.map((line) => JSON.parse(line))).toMatchObject([
      { id: "run-3", state: "unclaimed" },
      { runCount: 1, states: { unclaimed: 1 }, otherRecords: { [node.origin]: 2 }, unreadableCount: 0 },
    ]);
    expect(code).toBe(0);
  });

  it("a name of dispatchers that is not found: no run is told as unclaimed, code 1", async () => {
    await writeFile(join(directory.path, "ids"), "run-3");
    // The fixed list beside it is no whole one either.
    const args = ["router", "reconcile", join(directory.path, "ids"), ...flags, "--all"];
    args.push("--backends-srv", "no-such-name.invalid");
    const { code, stdout, stderr } = await run(args);
    expect(stderr.join("\n")).toMatch(/no-such-name\.invalid is not found: \S+: which/);
    expect(stdout).toEqual([]);
    expect(code).toBe(1);
  });

  it("a file that is not there is told of: code 2", async () => {
    const { code, stderr } = await run(["router", "reconcile", join(directory.path, "no-file"), ...flags]);
    expect(stderr.join()).toMatch(/no-file gives no ids \(ENOENT\)/);
    expect(code).toBe(2);
  });

  it("no ids at all, as of a pipe whose first command failed, are no sound plane: code 2", async () => {
    await writeFile(join(directory.path, "ids"), "\n\n");
    const inputs: [string, string][] = [["-", "standard input"]];
    if (inject("size") === "long") inputs.push([join(directory.path, "ids"), "ids"]);
    for (const [ids, name] of inputs) {
      const { code, stdout, stderr } = await run(["router", "reconcile", ids, ...flags]);
      expect(stderr).toEqual([expect.stringContaining(`${name} gives no ids (there is none`)]);
      expect([code, stdout]).toEqual([2, []]);
    }
  });

  it("a record that cannot be read, or a line that is no id, leaves nothing settled: code 1", async () => {
    await writeFile(join(directory.path, "ids"), "run-3\nrun-3\n");
    await writeFile(join(directory.path, "ledger", `${"0".repeat(64)}.json`), "{");
    const args = ["router", "reconcile", join(directory.path, "ids"), ...flags];
    const unreadable = await run(args);
    expect(unreadable.stderr[0]).toBe("0 of 1 runs are outstanding");
    expect(unreadable.stderr.at(-1)).toMatch(
      /^1 entry is no readable record, so that what is told as unclaimed/,
    );
    expect(unreadable.code).toBe(1);
    if (inject("size") === "sample") return;
    await rm(join(directory.path, "ledger", `${"0".repeat(64)}.json`));
    await writeFile(join(directory.path, "ids"), "run-3\nno id\n");
    const invalid = await run(args);
    expect(invalid.stderr.slice(0, 2)).toEqual([
      "0 of 1 runs are outstanding",
      "1 line is no id that a router takes: look where they come from",
    ]);
    expect(invalid.code).toBe(1);
  });

  it("a ledger that is not there is told with a flag's advice: code 1", async () => {
    await writeFile(join(directory.path, "ids"), "run-3");
    const args = [...flags.slice(0, 4), "--ledger", join(directory.path, "none"), ...flags.slice(6)];
    const { code, stderr } = await run(["router", "reconcile", join(directory.path, "ids"), ...args]);
    expect(stderr.at(-1)).toMatch(/no ledger was ever created.*without --require-existing-ledger/);
    expect(stderr.join()).not.toContain("requireExisting");
    expect(code).toBe(1);
  });
});
