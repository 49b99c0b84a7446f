/** A real PostgreSQL server on 127.0.0.1 with a disk of its own and fsync on, which can be crashed, restarted and copied. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chownSync, closeSync, openSync, readFileSync } from "node:fs";
import { appendFile, chmod, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { freePort } from "../../../../tools/test-support/free-port.ts";
import { findPostgres, type PostgresBinaries } from "./postgres-binaries.ts";

/** PostgreSQL refuses to run as root; "nobody" has an account everywhere. */
const SERVER_USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;
const START_LIMIT_MS = 90_000;

/** `fast` and `immediate` as in pg_ctl; `kill` is SIGKILL. */
export type StopKind = "fast" | "immediate" | "kill";

export class PostgresServer implements AsyncDisposable {
  readonly #directory: string;
  readonly #binaries: PostgresBinaries;
  readonly #data: string;
  readonly #settings: Record<string, string>;
  #process: ChildProcess | undefined;
  port: number;

  private constructor(
    directory: string,
    binaries: PostgresBinaries,
    { port, settings }: { port: number; settings: Record<string, string> },
  ) {
    this.#directory = directory;
    this.#binaries = binaries;
    this.#data = join(directory, "data");
    this.port = port;
    this.#settings = settings;
    process.once("exit", () => this.#process?.kill("SIGKILL"));
  }

  /** A running server with one database, `cells`; undefined where none can be had. */
  static async start(settings: Record<string, string> = {}): Promise<PostgresServer | undefined> {
    const directory = await temporary();
    const binaries = findPostgres(join(directory, "postgresql"));
    if (binaries === undefined) {
      await rm(directory, { recursive: true });
      return undefined;
    }
    const server = new PostgresServer(directory, binaries, { port: await freePort(), settings });
    await promisify(execFile)(
      binaries.initdb,
      [
        "--pgdata",
        server.#data,
        "--username",
        "postgres",
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
        "--no-locale",
        "--no-sync",
        "--no-instructions",
      ],
      { ...SERVER_USER, cwd: directory, env: { TZ: "UTC" } },
    );
    await writeFile(
      join(server.#data, "pg_hba.conf"),
      "host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n",
    );
    await server.boot();
    await server.query("CREATE DATABASE cells", "postgres");
    return server;
  }

  /** The address of the database, for a user. */
  url(user = "postgres", database = "cells"): string {
    return `postgresql://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** One statement on a connection of its own, as the superuser; answers its rows. */
  async query(text: string, database = "cells"): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url("postgres", database) });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** Starts the server on its port; resolves when it answers. */
  async boot(settings: Record<string, string> = {}): Promise<void> {
    const until = performance.now() + START_LIMIT_MS;
    while (performance.now() < until) {
      // Children of a killed server may hold its memory for a moment, so that the next one refuses and ends.
      if (this.#process === undefined) this.#spawn(settings);
      if (await this.answers()) return;
      await sleep(20);
    }
    throw new TypeError(`PostgreSQL does not start: ${readFileSync(this.#logFile, "utf8").slice(-2_000)}`);
  }

  /** Ends the server; resolves when it is gone. */
  async stop(how: StopKind): Promise<void> {
    const running = this.#process;
    if (running === undefined) return;
    const gone = new Promise((done) => running.once("exit", done));
    running.kill(({ fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const)[how]);
    await gone;
  }

  /**
   * A standby that this server waits for with each commit from now on. Both are restarted for it.
   * @returns the standby, running; {@link promote} makes it a primary
   */
  async addStandby(): Promise<PostgresServer> {
    await this.stop("fast");
    const directory = await temporary();
    const standby = new PostgresServer(directory, this.#binaries, { port: await freePort(), settings: {} });
    await cp(this.#data, standby.#data, { recursive: true, preserveTimestamps: true });
    await writeFile(join(standby.#data, "standby.signal"), "");
    await appendFile(
      join(standby.#data, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${this.port} user=postgres application_name=standby'\n`,
    );
    if (SERVER_USER !== undefined)
      await promisify(execFile)("chown", ["-R", `${SERVER_USER.uid}:${SERVER_USER.gid}`, standby.#data]);
    await chmod(standby.#data, 0o700);
    await this.boot({ synchronous_standby_names: "standby" });
    await standby.boot();
    return standby;
  }

  async promote(): Promise<void> {
    await this.query("SELECT pg_promote()", "postgres");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("immediate");
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 20 });
  }

  async answers(): Promise<boolean> {
    try {
      await this.query("SELECT 1", "postgres");
      return true;
    } catch {
      return false;
    }
  }

  get #logFile(): string {
    return join(this.#directory, "server.log");
  }

  #spawn(settings: Record<string, string>): void {
    const all = {
      listen_addresses: "127.0.0.1",
      port: `${this.port}`,
      unix_socket_directories: "",
      shared_buffers: "32MB",
      max_connections: "200",
      ...this.#settings,
      ...settings,
    };
    const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const log = openSync(this.#logFile, "a");
    const child = spawn(this.#binaries.postgres, ["-D", this.#data, ...flags], {
      ...SERVER_USER,
      cwd: this.#directory,
      env: { TZ: "UTC" },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    this.#process = child;
    child.once("exit", () => {
      if (this.#process === child) this.#process = undefined;
    });
  }
}

/** A directory that the server's user owns and can reach. */
async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-postgres-"));
  await chmod(directory, 0o755);
  if (SERVER_USER !== undefined) chownSync(directory, SERVER_USER.uid, SERVER_USER.gid);
  return directory;
}
