// The daemon as a process of its own, with its pair of files.
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DaemonProcess } from "@cellkit/daemon";
import { until } from "../../../../tools/test-support/until.ts";
import { TestCa, type TestPair } from "./certificates.ts";
import { TlsClient } from "./tls-client.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** One line of its log, parsed. */
export type LogLine = Record<string, unknown>;

/** A running `cellkit-edge`. */
export class EdgeProcess {
  readonly ca = new TestCa();
  readonly lines: string[] = [];
  readonly directory: string;
  #pairCount = 0;
  process: DaemonProcess | undefined;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** Makes its files; {@link run} starts it. */
  static async prepare(): Promise<EdgeProcess> {
    const edge = new EdgeProcess(await mkdtemp(join(tmpdir(), "edge-process-")));
    await edge.write(edge.ca.issue());
    return edge;
  }

  get files(): { cert: string; key: string } {
    return { cert: join(this.directory, "pair", "tls.crt"), key: join(this.directory, "pair", "tls.key") };
  }

  /** Replaces certificate and key at once, as Kubernetes does: however slow this process is, the daemon meets no half of a pair twice. */
  async write({ cert, key }: TestPair): Promise<void> {
    this.#pairCount += 1;
    const name = `pair-${this.#pairCount}`;
    const next = join(this.directory, name);
    await mkdir(next);
    await writeFile(join(next, "tls.crt"), cert);
    await writeFile(join(next, "tls.key"), key);
    await symlink(name, `${next}.link`);
    await rename(`${next}.link`, join(this.directory, "pair"));
  }

  run(
    backend: string,
    args: readonly string[] = ["--execution-router", "--listen", "127.0.0.1:0"],
    env: NodeJS.ProcessEnv = {},
  ): DaemonProcess {
    const all = ["--backend", backend, "--tls-cert", this.files.cert, "--tls-key", this.files.key, ...args];
    this.process = new DaemonProcess("cellkit-edge", {
      command: process.execPath,
      args: ["--conditions=@cellkit/source", main, ...all, "--log-level", "debug"],
      env: { PATH: process.env["PATH"], ...env },
      onLine: (line) => void this.lines.push(line),
    });
    return this.process;
  }

  get log(): LogLine[] {
    return this.lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as LogLine);
  }

  /** Waits for a line of the log. */
  logged(message: string | RegExp): Promise<LogLine> {
    return until(`"${message}" in the log`, () =>
      this.log.find(({ msg }) => (typeof message === "string" ? msg === message : message.test(String(msg)))),
    );
  }

  /** Waits until it serves. @returns its ports */
  async ready(): Promise<{ port: number; internal: string }> {
    const { listen, internal } = await this.logged("ready");
    return { port: Number(String(listen).split(":").at(-1)), internal: String(internal) };
  }

  client(port: number): Promise<TlsClient> {
    return TlsClient.dial(port, { ca: this.ca.cert });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process?.kill();
    await rm(this.directory, { recursive: true, force: true });
  }
}
