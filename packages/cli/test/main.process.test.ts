// What the command says about itself.
import { describe, expect, it } from "vitest";
import { run } from "./support/command.ts";

describe("help teaches", () => {
  it.each([
    [
      "cellkit",
      ["--help"],
      [/^Usage: cellkit COMMAND/, / dev +Run a project/, / deploy +Bundle/, / bucket serve +Serve/],
    ],
    ["cellkit bucket", ["bucket", "--help"], [/^Usage: cellkit bucket COMMAND/, / serve +Serve a directory/]],
    [
      "cellkit dev",
      ["dev", "--help"],
      [
        /--nodes NUMBER {2}\[CELLKIT_DEV_NODES\]; default: 1/,
        /--\[no-\]watch/,
        /cellkit dev examples\/chat --nodes 3/,
      ],
    ],
    [
      "cellkit deploy",
      ["deploy", "--help"],
      [/--bucket URL {2}\[CELLD_BUCKET\]; required/, /--\[no-\]replace-script/, /no Wrangler project/],
    ],
    [
      "cellkit bucket serve",
      ["bucket", "serve", "--help"],
      [/^Usage: cellkit bucket serve DIR/, /default: 127\.0\.0\.1:9000/, /0 +stopped by a signal/],
    ],
  ])("%s", async (_, args, parts) => {
    const { code, stdout, stderr } = await run(args);
    expect(stderr).toEqual([]);
    for (const part of parts) expect(stdout.join("\n")).toMatch(part);
    expect(code).toBe(0);
  });
});

it.each([
  ["cellkit", [], / deploy +Bundle/],
  ["cellkit bucket", ["bucket"], / serve +Serve a directory/],
])("%s alone lists the commands to people, and is no success", async (name, args, part) => {
  const { code, stdout, stderr } = await run(args);
  expect(stdout).toEqual([]);
  expect(stderr[0]).toBe(`Usage: ${name} COMMAND [options]`);
  expect(stderr.join("\n")).toMatch(part);
  expect(stderr.at(-1)).toBe(`${name}: COMMAND: is required`);
  expect(code).toBe(2);
});

it("an unknown command is told with the one that was meant, and the code is 2", async () => {
  expect(await run(["depoly", "examples/chat"])).toEqual({
    code: 2,
    stdout: [],
    stderr: [
      "cellkit: depoly: unknown command; did you mean deploy?",
      "Run `cellkit --help` for all options.",
    ],
  });
});

it("an unknown flag is told with the one that was meant, and the code is 2", async () => {
  const { code, stderr } = await run(["dev", "--node", "2"]);
  expect(stderr[0]).toBe("cellkit dev: --node: unknown flag; did you mean --nodes?");
  expect(code).toBe(2);
});

it("the version is the package's", async () => {
  expect(await run(["--version"])).toEqual({ code: 0, stdout: ["cellkit 0.0.0"], stderr: [] });
});

it("a number out of its range is told with the range, and the code is 2", async () => {
  expect(await run(["dev", "--nodes", "99"])).toMatchObject({
    code: 2,
    stderr: expect.arrayContaining(['cellkit dev: --nodes "99": must be 1 to 16']),
  });
});
