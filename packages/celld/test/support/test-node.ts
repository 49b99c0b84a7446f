import { until } from "../../../../tools/test-support/until.ts";
import { NodeProcess, type NodeProcessOptions } from "../../src/index.ts";
import { type FoundProcess, processesOf } from "./processes.ts";

/** A line of celld's log, parsed. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A celld process of a test: what it printed, and which processes are its own. */
export class TestNode extends NodeProcess {
  readonly directory: string;
  readonly lines: readonly string[];
  readonly host: string;
  readonly port: number;

  constructor(options: NodeProcessOptions) {
    const lines: string[] = [];
    super({ ...options, onLine: (line) => lines.push(line) });
    this.directory = options.directory;
    this.lines = lines;
    const { hostname, port } = new URL(this.publicUrl);
    this.host = hostname;
    this.port = Number(port);
  }

  /** Its log so far. */
  get log(): LogLine[] {
    return this.lines.flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as LogLine] : []));
  }

  /** Waits until it serves: a start takes a second where nothing else runs. */
  override ready(boundMs = 120_000): Promise<void> {
    return super.ready(boundMs);
  }

  /** Its state with what its workerd counts; an answer without that, of a workerd that took more than a second, is asked for again. */
  counted(): Promise<Record<string, unknown>> {
    return until(`counts of ${this.node}`, async () => {
      const state = await this.state();
      return state["residents"] !== undefined && state;
    });
  }

  /** Waits for a line of its log. */
  logged(what: string, matches: (line: LogLine) => boolean, boundMs = 30_000): Promise<LogLine> {
    return until(`line "${what}" in the log of ${this.node}`, () => this.log.find(matches), boundMs);
  }

  /** celld itself, its workerd and the shell that watches over it, as far as they run. */
  processes(): Promise<FoundProcess[]> {
    return processesOf(this.directory);
  }

  /** Waits until none of them runs: who watches over a process that has ended needs a moment to see it. */
  async gone(): Promise<void> {
    await until(`end of all processes of ${this.node}`, async () => (await this.processes()).length === 0);
  }

  /** The process id of its workerd. */
  async workerdPid(): Promise<number> {
    const { runtime } = (await this.state()) as { runtime: { pid?: number } };
    return runtime.pid ?? 0;
  }

  /** Waits until a drain has begun: health turns 503 at its first step. */
  draining(boundMs = 30_000): Promise<unknown> {
    return until("drain", async () => (await this.state())["draining"] === true, boundMs);
  }

  /** Asks the Worker through this node; a body that is not JSON is answered as undefined. */
  async ask(path: string, init?: RequestInit): Promise<{ status: number; body: Record<string, unknown> }> {
    const answer = await fetch(`${this.publicUrl}${path}`, { signal: AbortSignal.timeout(60_000), ...init });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }
}
