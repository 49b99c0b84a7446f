import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { openBucket } from "@cellkit/bucket";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { freePorts } from "../src/free-ports.ts";
import { Command, run } from "./support/command.ts";
import { processesOf } from "./support/processes.ts";
import { TemporaryDirectory } from "./support/project.ts";

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await TemporaryDirectory.make();
});
afterAll(() => directory.remove());

/** What a shell has in its environment after it has read these lines. */
function environmentOf(lines: readonly string[]): Record<string, string> {
  const script = `${lines.join("\n")}\nenv -0`;
  const text = execFileSync("/bin/sh", ["-c", script], {
    env: { PATH: process.env["PATH"] },
    encoding: "utf8",
  });
  return Object.fromEntries(
    text
      .split("\0")
      .filter((entry) => /^(AWS_|CELLD_|S3_)/.test(entry))
      .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
}

/** Opens the bucket that an environment names. */
function bucketOf(env: Record<string, string>) {
  return openBucket(env["CELLD_BUCKET"] ?? "", {
    endpoint: env["S3_ENDPOINT"],
    region: env["AWS_REGION"],
    credentials: {
      accessKeyId: env["AWS_ACCESS_KEY_ID"] ?? "",
      secretAccessKey: env["AWS_SECRET_ACCESS_KEY"] ?? "",
    },
  });
}

const serve = (folder: string, ...flags: string[]) => [
  ...["bucket", "serve", join(directory.path, folder), "--listen", "127.0.0.1:0"],
  ...flags,
];

it("prints the environment by which openBucket and `cellkit deploy` find it, beside a file:// of the same directory", async () => {
  const command = new Command(serve("data"));
  const env = environmentOf(await command.printed(5));
  expect(Object.keys(env).sort()).toEqual([
    "AWS_ACCESS_KEY_ID",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "CELLD_BUCKET",
    "S3_ENDPOINT",
  ]);
  const file = join(directory.path, "data.credentials.json");
  await until("a line for people", () => command.stderr.length > 0);
  expect(command.stderr).toEqual([
    `serving ${join(directory.path, "data")} at ${env["S3_ENDPOINT"]}, key pair in ${file}; stop with Ctrl-C`,
  ]);

  const served = bucketOf(env);
  const opened = openBucket(pathToFileURL(join(directory.path, "data")).href);
  await served.put("from-server", "1");
  expect(await opened.createIfAbsent("from-server", "2")).toEqual({ kind: "rejected" });
  await opened.put("from-file", "3");
  expect(Buffer.from((await served.get("from-file"))?.body ?? []).toString()).toBe("3");
  const project = await directory.project("project", "hello");
  expect(await run(["deploy", project], env)).toMatchObject({ code: 0, stdout: [/^counter [0-9a-f]{16}$/] });
  expect(await opened.get("deploy/current.json")).toBeDefined();
  await Promise.all([served.close(), opened.close()]);

  command.process.signal("SIGTERM");
  expect((await command.outcome()).code).toBe(0);
  await until("end of every process", async () => (await processesOf(directory.path)).length === 0);
});

it("keeps the key pair that it made in a file that only its owner may read, and takes it again", async () => {
  const first = new Command(serve("kept"));
  const lines = await first.printed(5);
  const file = join(directory.path, "kept.credentials.json");
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
  const { accessKeyId, secretAccessKey } = JSON.parse(await readFile(file, "utf8"));
  expect(lines.slice(3)).toEqual([
    `export AWS_ACCESS_KEY_ID=${accessKeyId}`,
    `export AWS_SECRET_ACCESS_KEY=${secretAccessKey}`,
  ]);
  first.process.signal("SIGINT");
  expect((await first.outcome()).code).toBe(0);

  const second = new Command(serve("kept"));
  expect((await second.printed(5)).slice(3)).toEqual(lines.slice(3));
  await second.process.stop(60_000);
});

it("takes name and key pair from flags before the environment, and never prints a secret that was given", async () => {
  const secret = "it's a secret";
  const command = new Command(serve("given", "--access-key-id", "my key", "--name", "flagged"), {
    AWS_ACCESS_KEY_ID: "another",
    AWS_SECRET_ACCESS_KEY: secret,
    CELLKIT_BUCKET_NAME: "from-environment",
  });
  const env = environmentOf(await command.printed(4));
  expect(env).toEqual({
    CELLD_BUCKET: "s3://flagged",
    S3_ENDPOINT: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "my key",
  });
  const bucket = bucketOf({ ...env, AWS_SECRET_ACCESS_KEY: secret });
  await bucket.put("key", "1");
  await bucket.close();
  await command.process.stop(60_000);
  expect([...command.stdout, ...command.stderr].join("\n")).not.toMatch(/a secret|SECRET/);
  await expect(stat(join(directory.path, "given.credentials.json"))).rejects.toMatchObject({
    code: "ENOENT",
  });
});

describe("one line says what to do about", () => {
  it.each([
    [
      "half a key pair: the secret is missing",
      { AWS_ACCESS_KEY_ID: "a" },
      /^cellkit bucket serve: --secret-access-key: is the missing half of the key pair: give both, or neither/,
    ],
    [
      "half a key pair: its name is missing",
      { AWS_SECRET_ACCESS_KEY: "long-enough" },
      /^cellkit bucket serve: --access-key-id: is the missing half of the key pair/,
    ],
    [
      "an address that is none",
      { CELLKIT_BUCKET_LISTEN: "127.0.0.1:70000" },
      /^cellkit bucket serve: CELLKIT_BUCKET_LISTEN "127\.0\.0\.1:70000": must be HOST:PORT/,
    ],
    [
      "a bucket name that is none",
      { CELLKIT_BUCKET_NAME: "No" },
      /^cellkit bucket serve: CELLKIT_BUCKET_NAME "No": must be a bucket name of S3/,
    ],
  ])("%s: code 2, and nothing is made", async (_, env, line) => {
    const { code, stdout, stderr } = await run(["bucket", "serve", join(directory.path, "never")], env);
    expect({ code, stdout }).toEqual({ code: 2, stdout: [] });
    expect(stderr).toEqual([
      expect.stringMatching(line),
      "Run `cellkit bucket serve --help` for all options.",
    ]);
    await expect(stat(join(directory.path, "never"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("a port that is taken: code 1", async () => {
    const [port = 0] = await freePorts(1);
    const taker = createServer().listen(port, "127.0.0.1");
    await once(taker, "listening");
    const { code, stdout, stderr } = await run([
      ...["bucket", "serve", join(directory.path, "taken")],
      ...["--listen", `127.0.0.1:${port}`],
    ]);
    taker.close();
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: [],
      stderr: [expect.stringMatching(/cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\); take another port/)],
    });
  });

  it.each([
    // Nobody makes directories in sysfs, not even root.
    [
      "a directory that cannot be made",
      "/sys/cellkit",
      {},
      /\/sys\/cellkit\.credentials\.json cannot be written \(E/,
    ],
    [
      "a directory that cannot be made, with a key pair",
      "/sys/cellkit",
      { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "long-enough" },
      /bucket \/sys\/cellkit denied access \(E.*\); check .*permissions$/,
    ],
    [
      "a directory that holds something else",
      "full",
      {},
      /full is no cellkit bucket and holds "file"; name an empty/,
    ],
  ])("%s: code 1", async (_, path, env, line) => {
    await directory.write("full/file", "not an object");
    const folder = resolve(directory.path, path);
    const outcome = await run(["bucket", "serve", folder, "--listen", "127.0.0.1:0"], env);
    expect(outcome).toEqual({ code: 1, stdout: [], stderr: [expect.stringMatching(line)] });
  });
});

it.runIf(process.platform === "linux")(
  "a directory that cannot be made ends it with 1 and its path",
  async () => {
    const args = ["bucket", "serve", "/proc/cellkit-none", "--listen", "127.0.0.1:0"];
    const pair = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "a-long-secret" };
    const given = await run(args, pair);
    expect(given.stderr.join("\n")).toMatch(/\/proc\/cellkit-none/);
    expect(given).toMatchObject({ code: 1, stdout: [] });
    const made = await run(args);
    expect(made.stderr.join("\n")).toMatch(/\/proc\/cellkit-none\.credentials\.json cannot be written/);
    expect(made).toMatchObject({ code: 1, stdout: [] });
  },
);
