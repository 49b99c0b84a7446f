// What a person sees while the demo runs: a table that redraws itself on a terminal, plain lines elsewhere.
import { stripVTControlCharacters } from "node:util";
import type { LocalFleet } from "cellkit";
import type { Tally } from "./tally.ts";
import type { Traffic } from "./traffic.ts";

/** Writes progress to one stream until it is stopped. */
export class LiveTable {
  readonly #stream: NodeJS.WriteStream;
  readonly #startMs: number;
  readonly #lines: string[] = [];
  #drawnLines = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: NodeJS.WriteStream, startMs: number) {
    this.#stream = stream;
    this.#startMs = startMs;
  }

  /** Tells one step of the demo. */
  step(line: string): void {
    const seconds = ((performance.now() - this.#startMs) / 1000).toFixed(1).padStart(5);
    const text = `${seconds} s  ${line}`;
    if (!this.#stream.isTTY) {
      this.#stream.write(`${text}\n`);
      return;
    }
    this.#lines.push(text);
    if (this.#lines.length > 12) this.#lines.shift();
  }

  /** Redraws four times a second on a terminal; elsewhere a line every five seconds. */
  follow(fleet: LocalFleet, traffic: Traffic, tally: Tally): void {
    const draw = this.#stream.isTTY
      ? () => this.#redraw(fleet, traffic, tally)
      : () => this.step(figures(traffic, tally));
    this.#timer = setInterval(draw, this.#stream.isTTY ? 250 : 5_000);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #redraw(fleet: LocalFleet, traffic: Traffic, tally: Tally): void {
    const width = this.#stream.columns || 100;
    const rows = fleet.nodes.map((node) => {
      const last = tally.nodes.findLast((record) => record.node === node.name);
      return `  ${node.name.padEnd(10)} ${node.publicUrl.padEnd(26)} ${describe(last?.what)}`;
    });
    const text = [
      "",
      "  node       address                    state",
      ...rows,
      "",
      `  ${figures(traffic, tally)}`,
      "",
      ...this.#lines,
    ];
    const up = this.#drawnLines > 0 ? `\u001b[${this.#drawnLines}A` : "";
    const clipped = text.map((line) =>
      stripVTControlCharacters(line).length > width ? line.slice(0, width) : line,
    );
    this.#stream.write(`${up}\u001b[J${clipped.join("\n")}\n`);
    this.#drawnLines = text.length;
  }
}

function describe(what: string | undefined): string {
  if (what === "drain") return "\u001b[33mdraining\u001b[0m";
  if (what === "drained") return "\u001b[33mrestarting\u001b[0m";
  if (what === "kill" || what === "killed") return "\u001b[31mkilled\u001b[0m";
  return "\u001b[32mserving\u001b[0m";
}

function figures(traffic: Traffic, tally: Tally): string {
  const failed = tally.calls.filter(({ outcome }) => outcome === "failed").length;
  const ambiguous = tally.calls.filter(({ outcome }) => outcome === "ambiguous").length;
  const retries = tally.calls.reduce((sum, call) => sum + call.retries, 0);
  return `${tally.calls.length} requests, ${failed} failed, ${ambiguous} ambiguous, ${retries} retries; ${traffic.rooms.length} rooms, ${traffic.openSockets} sockets open, ${tally.sockets.reconnects} reconnects`;
}
