import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { Toy } from "./support/toy.ts";

const running: Toy[] = [];
afterEach(() => Promise.all(running.splice(0).map((toy) => toy.process.kill())));

function tool(args: string[], env?: Record<string, string>): Toy {
  const started = new Toy("toy-command", args, env);
  running.push(started);
  return started;
}

function text(toy: Toy, stream: "stdout" | "stderr"): string[] {
  return toy.lines.filter((line) => line.stream === stream).map((line) => line.text);
}

it("data goes to stdout, words for people to stderr, and the command's code ends it", async () => {
  const command = tool(["greet", "you", "--code=3"], { TOOL_X: "1" });
  expect(await command.process.exited).toEqual({ code: 3, signal: null });
  expect(text(command, "stdout")).toEqual(['{"hello":"you"}']);
  expect(text(command, "stderr")).toEqual([
    "tool greet: TOOL_X is not a variable of tool greet and has no effect",
    "gave back",
  ]);
});

it("an error is its message in one line, what was taken is given back, and the code is 1", async () => {
  const command = tool(["greet", "nobody"]);
  expect(await command.process.exited).toEqual({ code: 1, signal: null });
  expect(text(command, "stderr")).toEqual(["tool greet: secret file /names: is empty", "gave back"]);
});

it("bad flags end with 2 before anything runs", async () => {
  const command = tool(["greet", "--cod=1"]);
  expect(await command.process.exited).toEqual({ code: 2, signal: null });
  expect(text(command, "stdout")).toEqual([]);
  expect(text(command, "stderr")[0]).toBe("tool greet: --cod: unknown flag; did you mean --code?");
});

it("without a command it shows them all to people, and ends with 2", async () => {
  const command = tool([]);
  expect(await command.process.exited).toEqual({ code: 2, signal: null });
  expect(text(command, "stdout")).toEqual([]);
  expect(text(command, "stderr").join("\n")).toMatch(
    /greet {2}Print a greeting\n {2}wait {3}Wait for a signal[\s\S]*\n\ntool: COMMAND: is required$/,
  );
});

it.each([
  ["a command that ends on it ends with its own code", "ends", 0],
  ["a command that fails because of it ends with 130", "fails", 130],
] as const)("the first signal: %s", async (_, how, code) => {
  const command = tool(["wait", how]);
  await command.process.until("waiting", async () => text(command, "stdout").includes("waiting"), 60_000);
  command.process.signal("SIGINT");
  expect(await command.process.exited).toEqual({ code, signal: null });
  expect(text(command, "stderr")).toEqual([]);
});

it("a terminal that is closed ends it as the first signal does", async () => {
  const command = tool(["wait", "fails"]);
  await command.process.until("waiting", async () => text(command, "stdout").includes("waiting"), 60_000);
  command.process.signal("SIGHUP");
  expect(await command.process.exited).toEqual({ code: 130, signal: null });
});

it.skipIf(!existsSync("/dev/full"))("output that cannot be written is a failure", async () => {
  const full = openSync("/dev/full", "w");
  const toy = fileURLToPath(new URL("./fixtures/toy-command.ts", import.meta.url));
  const command = spawn(process.execPath, ["--conditions=@cellkit/source", toy, "greet"], {
    stdio: ["ignore", full, "pipe"],
    env: {},
  });
  closeSync(full);
  let said = "";
  command.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  expect(await once(command, "close")).toEqual([1, null]);
  expect(said).toMatch(/standard output could not be written.*ENOSPC/);
});

it("a second signal ends it at once with 130", async () => {
  const command = tool(["wait", "ignores"]);
  await command.process.until("waiting", async () => text(command, "stdout").includes("waiting"), 60_000);
  command.process.signal("SIGINT");
  command.process.signal("SIGTERM");
  expect(await command.process.exited).toEqual({ code: 130, signal: null });
});
