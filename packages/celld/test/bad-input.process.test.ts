// What a node is given can be wrong in many ways. Each ends with one clear line that says what to do, the right exit code,
// and nothing left running.
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DaemonProcess } from "@cellkit/daemon";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../../../tools/test-support/free-port.ts";
import { until } from "../../../tools/test-support/until.ts";
import { celldCommand } from "../src/index.ts";
import { Fleet } from "./support/fleet.ts";
import { processesOf } from "./support/processes.ts";

const preload = fileURLToPath(new URL("./fixtures/other-workerd.cjs", import.meta.url));
const brokenProject = fileURLToPath(new URL("./fixtures/broken", import.meta.url));

let fleet: Fleet;
let directory: string;
/** A port that is taken. */
let takenPort: number;
const taker = createServer();

beforeAll(async () => {
  fleet = await Fleet.open();
  await fleet.deploy(brokenProject);
  directory = await mkdtemp(join(tmpdir(), "celld-bad-"));
  takenPort = await freePort();
  taker.listen(takenPort, "127.0.0.1");
});
afterAll(async () => {
  taker.close();
  await fleet[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

interface Run {
  code: number | null;
  /** What a person has to read: error lines and worse, and what came on standard error. */
  problems: string[];
}

/** Runs celld to its end. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const lines: [string, string][] = [];
  const data = env["CELLD_WATCH"] ?? (await mkdtemp(join(directory, "data-")));
  const command = celldCommand();
  const celld = new DaemonProcess("celld", {
    command: command.command,
    args: [...command.args, ...args],
    env: {
      PATH: process.env["PATH"],
      AWS_ACCESS_KEY_ID: fleet.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: fleet.credentials.secretAccessKey,
      CELLD_ADDR: "127.0.0.1:0",
      CELLD_WATCH: data,
      ...env,
    },
    onLine: (line, stream) => lines.push([stream, line]),
  });
  const { code } = await celld.exited;
  // Who watches over a process that has ended needs a moment to see it.
  await until("end of all its processes", async () => (await processesOf(data)).length === 0);
  const problems = lines.flatMap(([stream, line]) => {
    if (stream === "stderr") return [line];
    const { level, msg } = JSON.parse(line) as { level: string; msg: string };
    return level === "error" || level === "fatal" ? [msg] : [];
  });
  return { code, problems };
}

const onStore = (url = fleet.bucketUrl) => ["--bucket", url, "--endpoint", fleet.store.endpoint];

it("an unknown flag, and every other mistake on the command line, in one go: code 2", async () => {
  expect(await run(["--bukcet", "s3://cells", "--endpoint", "ftp://x"])).toEqual({
    code: 2,
    problems: [
      "cellkit-celld: 3 problems:",
      "  --bukcet: unknown flag; did you mean --bucket?",
      expect.stringMatching(/^ {2}--bucket: is required \(or set CELLD_BUCKET\): /),
      '  --endpoint "ftp://x": must be an http:// or https:// URL',
      "Run `cellkit-celld --help` for all options.",
    ],
  });
});

it("a file:// bucket: code 2, and the line names the command that serves it", async () => {
  expect(await run(["--bucket", "file:///srv/cells"])).toEqual({
    code: 2,
    problems: [
      expect.stringMatching(/^cellkit-celld: --bucket "file:.*`cellkit bucket serve DIR`/),
      "Run `cellkit-celld --help` for all options.",
    ],
  });
});

const rows: { what: string; line: RegExp; args?: () => string[]; env?: Record<string, string> }[] = [
  {
    what: "a public port that is taken",
    args: () => [...onStore(), "--listen", `127.0.0.1:${takenPort}`],
    line: /^cannot listen on 127\.0\.0\.1:\d+.*choose another port$/,
  },
  {
    what: "an internal port that is taken",
    args: () => [...onStore(), "--internal-listen", `127.0.0.1:${takenPort}`],
    line: /^cannot listen on 127\.0\.0\.1:\d+: the port is taken; .*choose another port$/,
  },
  {
    what: "a store that does not answer",
    args: () => ["--bucket", "s3://cells", "--endpoint", "http://127.0.0.1:1"],
    line: /gave no answer at the endpoint http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\); check the endpoint and that the store runs$/,
  },
  {
    what: "wrong credentials",
    env: { AWS_SECRET_ACCESS_KEY: "another-one" },
    line: /denied access \(SignatureDoesNotMatch\); check the credentials/,
  },
  {
    what: "a bucket that does not exist",
    args: () => onStore("s3://elsewhere"),
    line: /bucket s3:\/\/elsewhere does not exist; create it or correct the URL$/,
  },
  {
    what: "a Worker that throws at load",
    line: /^the Worker greeting did not load: Uncaught TypeError: the price list is missing\b[\s\S]*deploy again$/,
  },
  {
    what: "workerd is not installed",
    env: { NODE_OPTIONS: `--require ${preload}`, CELLKIT_TEST_WORKERD: "" },
    line: /^the npm package workerd is not installed: install workerd@1\.\S+/,
  },
  {
    what: "a secrets file that is not there",
    args: () => [...onStore(), "--secrets-file", join(directory, "absent")],
    line: /^the secrets file \S+ cannot be opened: ENOENT/,
  },
  {
    what: "a vars file that is not there",
    args: () => [...onStore(), "--vars-file", join(directory, "absent")],
    line: /^the vars file \S+ cannot be opened: ENOENT/,
  },
  {
    what: "a data directory that cannot be made",
    env: { CELLD_WATCH: join(preload, "data") },
    line: /^the data directory \S+ cannot be used: ENOTDIR/,
  },
];

it.each(rows)(
  "$what: one line that says what to do, code 1, nothing left running",
  async ({ args, env, line }) => {
    const { code, problems } = await run((args ?? onStore)(), env);
    expect(problems).toEqual([expect.stringMatching(line)]);
    expect(code).toBe(1);
  },
);

it("a full disk under the data directory: one line that says what to do, code 1", async (context) => {
  const disk = join(directory, "disk");
  await mkdir(disk);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "celld-test", disk]);
  if (mounted.status !== 0 && process.env["CI"] !== "true") {
    context.skip(`a small disk cannot be mounted here: ${mounted.stderr}`);
  }
  try {
    await expect(writeFile(join(disk, "ballast"), Buffer.alloc(128 * 1024))).rejects.toThrow("ENOSPC");
    const { code, problems } = await run(onStore(), { CELLD_WATCH: join(disk, "data") });
    expect(problems).toEqual([expect.stringMatching(/^the data directory \S+ cannot be used: ENOSPC/)]);
    expect(code).toBe(1);
  } finally {
    spawnSync("umount", [disk]);
  }
});

it("another version of workerd: one line with both versions, code 1", async () => {
  const folder = join(directory, "workerd");
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "workerd", version: "1.20990101.0" }));
  const { code, problems } = await run(onStore(), {
    NODE_OPTIONS: `--require ${preload}`,
    CELLKIT_TEST_WORKERD: folder,
  });
  expect(problems).toEqual([
    expect.stringMatching(
      /^workerd 1\.20990101\.0 is installed, but .* only with workerd (\S+): install workerd@\1$/,
    ),
  ]);
  expect(code).toBe(1);
});
