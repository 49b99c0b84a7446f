import { fileURLToPath } from "node:url";
import { DaemonProcess } from "../../src/index.ts";

/** A line of a program's output, parsed where it is JSON. */
export type Line = { stream: "stdout" | "stderr"; text: string; json: Record<string, unknown> | undefined };

/** A program of test/fixtures that runs, with what it has printed so far. */
export class Toy {
  readonly lines: Line[] = [];
  readonly process: DaemonProcess;

  constructor(program: string, args: readonly string[], env: Record<string, string> = {}) {
    const file = fileURLToPath(new URL(`../fixtures/${program}.ts`, import.meta.url));
    this.process = new DaemonProcess(program, {
      command: process.execPath,
      args: ["--conditions=@cellkit/source", "--disable-warning=ExperimentalWarning", file, ...args],
      env: { PATH: process.env["PATH"], ...env },
      onLine: (text, stream) => {
        const json = text.startsWith('{"level"') ? (JSON.parse(text) as Record<string, unknown>) : undefined;
        this.lines.push({ stream, text, json });
      },
    });
  }

  /** The messages of its log so far. */
  get messages(): unknown[] {
    return this.lines.flatMap(({ json }) => (json === undefined ? [] : [json["msg"]]));
  }

  /** Waits for a line of its log. */
  async said(message: string): Promise<Record<string, unknown>> {
    if (!this.messages.includes(message)) {
      await this.process.until(
        `heard saying "${message}"`,
        async () => this.messages.includes(message),
        60_000,
      );
    }
    return this.lines.find(({ json }) => json?.["msg"] === message)?.json ?? {};
  }
}
