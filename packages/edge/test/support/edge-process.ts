// The daemon as a process of its own, with its pair of files.
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DaemonProcess } from "@cellkit/daemon";
import { TestCa, type TestPair } from "./certificates.ts";
import { TlsClient } from "./tls-client.ts";
import { until } from "./until.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** One line of its log, parsed. */
export type LogLine = Record<string, unknown>;

/** A running `cellkit-edge`. */
export class EdgeProcess {
  readonly ca = new TestCa();
  readonly lines: string[] = [];
  readonly directory: string;
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
    return { cert: join(this.directory, "tls.crt"), key: join(this.directory, "tls.key") };
  }

  /** Replaces certificate and key, one after the other, as careful programs do. */
  async write({ cert, key }: TestPair): Promise<void> {
    for (const [path, text] of [
      [this.files.cert, cert],
      [this.files.key, key],
    ] as const) {
      await writeFile(`${path}.next`, text);
      await rename(`${path}.next`, path);
    }
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
