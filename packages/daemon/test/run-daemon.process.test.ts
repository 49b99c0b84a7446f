import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, expect, it } from "vitest";
import { Toy } from "./support/toy.ts";

const running: Toy[] = [];
afterEach(() => Promise.all(running.splice(0).map((toy) => toy.process.kill())));

function toy(args: string[], env?: Record<string, string>): Toy {
  const started = new Toy("toy-daemon", args, env);
  running.push(started);
  return started;
}

it.each(["SIGTERM", "SIGINT"] as const)("%s begins the ordered stop, which ends with 0", async (signal) => {
  const daemon = toy([]);
  await daemon.said("ready");
  daemon.process.signal(signal);
  expect(await daemon.process.exited).toEqual({ code: 0, signal: null });
  expect(daemon.messages).toEqual([
    "ready",
    "stopping",
    "draining",
    "leaving",
    "gave back the server",
    "gave back the first",
    "ended",
  ]);
});

it("its log is JSON lines on stdout, nothing is on stderr", async () => {
  const daemon = toy([]);
  await daemon.said("ready");
  daemon.process.signal("SIGTERM");
  await daemon.process.exited;
  expect(new Set(daemon.lines.map(({ stream }) => stream))).toEqual(new Set(["stdout"]));
  expect(daemon.lines.every(({ json }) => json?.["name"] === "toy" && json["kind"] === "works")).toBe(true);
});

it("started with nothing at all it shows its help to people, what is missing below it, and ends with 2", async () => {
  const daemon = new Toy("toy-bare", []);
  running.push(daemon);
  expect(await daemon.process.exited).toEqual({ code: 2, signal: null });
  expect(new Set(daemon.lines.map(({ stream }) => stream))).toEqual(new Set(["stderr"]));
  const lines = daemon.lines.map(({ text }) => text);
  expect(lines[0]).toBe("Usage: toy [options]");
  expect(lines.at(-1)).toBe("toy: --bucket: is required (or set TOY_BUCKET): Where cells live.");
});

it("a second signal ends it at once with 130", async () => {
  const daemon = toy(["--stop=hangs"]);
  await daemon.said("ready");
  daemon.process.signal("SIGTERM");
  await daemon.said("draining");
  daemon.process.signal("SIGINT");
  expect(await daemon.process.exited).toEqual({ code: 130, signal: null });
  expect(daemon.messages).not.toContain("leaving");
});

it("a stop asked for from inside ends with 0, and a signal that follows changes nothing", async () => {
  const daemon = toy([]);
  const { port } = await daemon.said("ready");
  await fetch(`http://127.0.0.1:${port}/shutdown`, { method: "POST" });
  daemon.process.signal("SIGTERM");
  expect(await daemon.process.exited).toEqual({ code: 0, signal: null });
  expect((await daemon.said("stopping"))["reason"]).toBe("POST /shutdown");
});

it("a stop that runs out of time ends with 4 and says which step", async () => {
  const daemon = toy(["--stop=late"]);
  await daemon.said("ready");
  daemon.process.signal("SIGTERM");
  expect(await daemon.process.exited).toEqual({ code: 4, signal: null });
  expect(await daemon.said("stop: timed out")).toMatchObject({
    level: "error",
    step: "drain",
    code: "CELLKIT_DAEMON_STEP_TIMEOUT",
  });
  expect(daemon.messages).toContain("leaving");
});

it("a stop with a failed step ends with 1", async () => {
  const daemon = toy(["--stop=fails"]);
  await daemon.said("ready");
  daemon.process.signal("SIGTERM");
  expect(await daemon.process.exited).toEqual({ code: 1, signal: null });
  expect(await daemon.said("stop: failed")).toMatchObject({
    step: "drain",
    err: { message: "a broken drain" },
  });
});

it("a start that fails gives everything back, says why in one line without a stack, and ends with 1", async () => {
  const daemon = toy(["--start=fails"]);
  expect(await daemon.process.exited).toEqual({ code: 1, signal: null });
  expect(daemon.messages).toEqual([
    "secret file /key: does not exist",
    "gave back the server",
    "gave back the first",
    "ended",
  ]);
  const line = daemon.lines[0]?.json;
  expect(line).toMatchObject({ level: "fatal", code: "CELLKIT_DAEMON_SECRET_FILE" });
  expect(line).not.toHaveProperty("err");
});

it("with the log level debug the stack is there", async () => {
  const daemon = toy(["--start=fails", "--log-level=debug"]);
  await daemon.process.exited;
  expect(daemon.lines[0]?.json?.["err"]).toMatchObject({ stack: expect.stringContaining("toy-daemon.ts") });
});

it("a port that is taken is one clear line and 1", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  const daemon = toy([`--listen=${port}`]);
  expect(await daemon.process.exited).toEqual({ code: 1, signal: null });
  expect(daemon.messages[0]).toMatch(/^cannot listen on 127\.0\.0\.1:\d+: the port is taken; /);
  taken.close();
});

it("a signal while starting stops the start, gives everything back and ends with 0", async () => {
  const daemon = toy(["--start=hangs"]);
  await daemon.said("waiting");
  daemon.process.signal("SIGTERM");
  expect(await daemon.process.exited).toEqual({ code: 0, signal: null });
  expect(daemon.messages).toEqual([
    "waiting",
    "stopping",
    "stopped while starting",
    "gave back the server",
    "gave back the first",
    "ended",
  ]);
});

it("a daemon that finds itself fenced ends with 3, without its ordered stop", async () => {
  const daemon = toy(["--start=fenced"]);
  expect(await daemon.process.exited).toEqual({ code: 3, signal: null });
  expect(daemon.messages).toEqual([
    "ready",
    "the lease lapsed",
    "gave back the server",
    "gave back the first",
    "ended",
  ]);
});

it.each(["crashes", "rejects"])(
  "an error that nobody caught (%s) is logged with its stack and ends with 1",
  async (how) => {
    const daemon = toy([`--start=${how}`]);
    expect(await daemon.process.exited).toEqual({ code: 1, signal: null });
    const line = await daemon
      .said("an error that nobody caught; ending")
      .catch(() => daemon.lines.at(-1)?.json);
    expect(line).toMatchObject({ level: "fatal", err: { stack: expect.stringContaining("toy-daemon.ts") } });
  },
);

it("bad flags are listed on stderr, nothing starts, and it ends with 2", async () => {
  const daemon = toy(["--start=never", "--lisen=1"]);
  expect(await daemon.process.exited).toEqual({ code: 2, signal: null });
  expect(daemon.lines.map(({ stream, text }) => [stream, text.split(":")[0]])).toEqual([
    ["stderr", "toy"],
    ["stderr", "  --lisen"],
    ["stderr", '  --start "never"'],
    ["stderr", "Run `toy --help` for all options."],
  ]);
});

it.each([
  ["--help", /^Usage: toy \[options\]$/],
  ["--version", /^toy 1\.2\.3$/],
  ["--print-config", /^\{$/],
])("%s prints to stdout, starts nothing and ends with 0", async (flag, first) => {
  const daemon = toy([flag]);
  expect(await daemon.process.exited).toEqual({ code: 0, signal: null });
  expect(daemon.lines[0]).toMatchObject({ stream: "stdout", text: expect.stringMatching(first) });
  expect(daemon.lines.every(({ stream }) => stream === "stdout")).toBe(true);
  expect(daemon.messages.filter((message) => message !== undefined)).toEqual([]);
});

it("an unknown variable with the prefix is a warning in the log", async () => {
  const daemon = toy(["--start=fails"], { TOY_LISTN: "1" });
  await daemon.process.exited;
  expect(daemon.lines[0]?.json).toMatchObject({
    level: "warn",
    msg: expect.stringContaining("TOY_LISTN is not a variable"),
  });
});
