// The daemon as a process of its own, with token files that a test rotates.
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DaemonProcess, type ProcessExit } from "@cellkit/daemon";
import { until } from "../../../../tools/test-support/until.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** One line of its log, parsed. */
export type LogLine = Record<string, unknown>;

/** Files with one token each, replaced as a careful program does it. */
export class TokenFiles {
  readonly #directory: string;
  readonly #generations = new Map<string, number>();
  /** Every token that was ever in use, to be looked for where none may be. */
  readonly all = new Set<string>();

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Files of the roles `client`, `backend` and `capability`. */
  static async create(directory: string): Promise<TokenFiles> {
    await mkdir(directory, { recursive: true });
    const files = new TokenFiles(directory);
    for (const role of ["client", "backend", "capability"]) await files.rotate(role);
    return files;
  }

  path(role: string): string {
    return join(this.#directory, role);
  }

  /** The token in the file now. */
  token(role: string): string {
    return `${role}-token-of-a-test-${this.#generations.get(role)}-Zq7`;
  }

  async rotate(role: string): Promise<void> {
    this.#generations.set(role, (this.#generations.get(role) ?? 0) + 1);
    this.all.add(this.token(role));
    await this.write(role, this.token(role));
  }

  async write(role: string, text: string): Promise<void> {
    await writeFile(`${this.path(role)}.next`, text, { mode: 0o600 });
    await rename(`${this.path(role)}.next`, this.path(role));
  }

  /** The flags that name them. */
  get flags(): string[] {
    return [
      ...["--client-token-file", this.path("client")],
      ...["--token-file", this.path("backend")],
      ...["--capability-token-file", this.path("capability")],
    ];
  }
}

/** One replica, which may be killed and started again. */
export class RouterProcess {
  readonly lines: string[] = [];
  readonly host: string;
  readonly #args: readonly string[];
  readonly #env: NodeJS.ProcessEnv;
  #process: DaemonProcess | undefined;
  #port = 0;
  #internal = "";

  /**
   * @param args flags beside the listeners
   * @param options `host` is where it listens; another one than 127.0.0.1 keeps its port free of outgoing connections while it is down
   */
  constructor(
    args: readonly string[],
    { host = "127.0.0.1", env = {} }: { host?: string; env?: NodeJS.ProcessEnv } = {},
  ) {
    this.host = host;
    this.#args = args;
    this.#env = env;
  }

  /** Starts it. */
  run(): DaemonProcess {
    const listeners = [`--listen=${this.host}:${this.#port}`, "--internal-listen=127.0.0.1:0"];
    this.#process = new DaemonProcess("cellkit-router", {
      command: process.execPath,
      args: ["--conditions=@cellkit/source", main, ...this.#args, ...listeners, "--log-level=debug"],
      env: { PATH: process.env["PATH"], ...this.#env },
      onLine: (line) => void this.lines.push(line),
    });
    return this.#process;
  }

  /** Starts it, and waits until it serves; a second time on the same port. */
  async start(): Promise<this> {
    const from = this.lines.length;
    const daemon = this.run();
    let exit: ProcessExit | undefined;
    void daemon.exited.then((ended) => {
      exit = ended;
    });
    const ready = await until(
      "router that is ready",
      () => this.logFrom(from).find(({ msg }) => msg === "ready") ?? (exit && { exit }),
      60_000,
    );
    if ("exit" in ready) throw new TypeError(`it ended: ${this.lines.slice(from).join("\n")}`);
    this.#port = Number(String(ready["listen"]).split(":").at(-1));
    this.#internal = String(ready["internal"]);
    return this;
  }

  /** The port to listen on, where it is not to be any free one. */
  usePort(port: number): void {
    this.#port = port;
  }

  get port(): number {
    return this.#port;
  }

  get daemon(): DaemonProcess {
    if (this.#process === undefined) throw new TypeError("it was not started");
    return this.#process;
  }

  logFrom(index: number): LogLine[] {
    const lines = this.lines.slice(index).filter((line) => line.startsWith("{"));
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** Waits for a line of the log. */
  logged(message: string | RegExp): Promise<LogLine> {
    return until(`"${message}" in the log`, () =>
      this.logFrom(0).find(({ msg }) =>
        typeof message === "string" ? msg === message : message.test(String(msg)),
      ),
    );
  }

  /** What the internal listener answers. */
  async internal(path: string): Promise<{ status: number; text: string }> {
    const answer = await fetch(`http://${this.#internal}${path}`);
    return { status: answer.status, text: await answer.text() };
  }

  /** kill -9. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
