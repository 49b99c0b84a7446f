// The command line of `npm run bench`. What the benchmarks measure is not measured here.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../workspace.ts";

function bench(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const command = ["--conditions=@cellkit/source", join(root, "tools/bench.ts"), ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, command, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}

it("--list names the benchmarks that the filter leaves, without measuring", async () => {
  const { code, stdout } = await bench("client/", "--list");
  const names = stdout
    .trim()
    .split("\n")
    .map((line) => line.split(" ")[0]);
  expect(code).toBe(0);
  expect(names).toContain("client/request-cpu");
  expect(names.filter((name) => !name?.startsWith("client/"))).toEqual([]);
});

it("--help says how to call it", async () => {
  expect(await bench("--help")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("--json FILE"),
    stderr: "",
  });
});

it.each([
  ["an unknown flag", ["--lst"], /^bench: Unknown option '--lst'/],
  [
    "a name that no benchmark has",
    ["no/such"],
    /^no benchmark has "no\/such" in its name; --list names all of them\n$/,
  ],
])("%s is told in words, with code 2", async (_, args, words) => {
  const { code, stdout, stderr } = await bench(...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(words);
  expect(stderr).not.toContain("    at ");
});
