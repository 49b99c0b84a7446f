// What the demo counts. It is written before anything that it counts, and knows neither the fleet nor the client:
// it hears what happened and when, and says whether the promise held.

/** One call as the application saw it: from the moment it was made to the moment it had an answer or an error. */
export interface CallRecord {
  cell: string;
  kind: "read" | "write";
  startMs: number;
  endMs: number;
  /** `ok`: a 2xx answer. `ambiguous`: an error that says the call may or may not have run. `failed`: anything else. */
  outcome: "ok" | "ambiguous" | "failed";
  /** Attempts beyond the first. */
  retries: number;
  /** The id of the row that a write adds. */
  writeId?: string;
  /** What went wrong, for the report. */
  error?: string;
}

/** Something that was done to a node. */
export interface NodeRecord {
  node: string;
  what: "drain" | "drained" | "kill" | "killed" | "ready";
  atMs: number;
  /** Upper bound of the cells it held, where its `/state` said so. */
  cells?: number;
  /** Its exit code, where it ended. */
  exitCode?: number | null;
}

/** The last line of `npm run demo -- --json`. The README has a table that defines each member. */
export interface Summary {
  held: boolean;
  nodes: number;
  drains: number;
  kills: number;
  requests: number;
  failed: number;
  ambiguous: number;
  ambiguousOutsideKill: number;
  unavailableMs: number;
  acknowledgedWrites: number;
  lost: number;
  duplicated: number;
  retries: number;
  sockets: { opened: number; reconnects: number; closeCodes: Record<string, number> };
  longestPauseMs: number;
  seconds: number;
  report: string;
}

/** How long after a kill an ambiguous call still counts as the kill's own. */
const killWindowMs = 30_000;

/** Collects what happened in one run. All times are milliseconds of one monotonic clock. */
export class Tally {
  readonly calls: CallRecord[] = [];
  readonly nodes: NodeRecord[] = [];
  readonly sockets = { opened: 0, reconnects: 0, closeCodes: {} as Record<string, number> };
  readonly #effects = new Map<string, ReadonlyMap<string, number>>();

  call(record: CallRecord): void {
    this.calls.push(record);
  }

  node(record: NodeRecord): void {
    this.nodes.push(record);
  }

  socketClosed(code: number): void {
    this.sockets.closeCodes[code] = (this.sockets.closeCodes[code] ?? 0) + 1;
  }

  /** What a cell says at the end: how many times the effect of each write stands in it. */
  effects(cell: string, occurrences: ReadonlyMap<string, number>): void {
    this.#effects.set(cell, occurrences);
  }

  /** Acknowledged writes whose effect is not in their cell. */
  lostWrites(): string[] {
    return this.calls.flatMap(({ kind, outcome, writeId, cell }) =>
      kind === "write" && outcome === "ok" && writeId !== undefined && !this.#effects.get(cell)?.has(writeId)
        ? [writeId]
        : [],
    );
  }

  /** Effects that may not be there: a second one of the same write, or one of a write that was reported as not run. */
  surplusEffects(): string[] {
    const mayExist = new Set(
      this.calls.flatMap(({ outcome, writeId }) =>
        outcome !== "failed" && writeId !== undefined ? [writeId] : [],
      ),
    );
    return [...this.#effects.values()].flatMap((occurrences) =>
      [...occurrences].flatMap(([id, count]) => (count > 1 || !mayExist.has(id) ? [id] : [])),
    );
  }

  /** From each kill to the first answer that each cell gave to a call made after it; the longest of these. */
  unavailableMs(endMs: number): number {
    let longest = 0;
    for (const { atMs } of this.nodes.filter(({ what }) => what === "kill")) {
      const asked = new Map<string, number>();
      for (const { cell, endMs: answeredMs, startMs, outcome } of this.calls) {
        if (endMs < atMs || answeredMs < atMs) continue;
        const good = outcome === "ok" && startMs >= atMs;
        asked.set(cell, Math.min(asked.get(cell) ?? endMs, good ? answeredMs : endMs));
      }
      for (const answeredMs of asked.values()) longest = Math.max(longest, answeredMs - atMs);
    }
    return longest;
  }

  /** The longest time for which one cell gave no answer while it was being called. */
  longestPauseMs(): number {
    const lastMs = new Map<string, number>();
    let longest = 0;
    const ordered = this.calls.toSorted((a, b) => a.endMs - b.endMs);
    for (const { cell, startMs, endMs, outcome } of ordered) {
      const sinceMs = lastMs.get(cell) ?? startMs;
      if (outcome !== "ok") {
        if (!lastMs.has(cell)) lastMs.set(cell, startMs);
        continue;
      }
      longest = Math.max(longest, endMs - sinceMs);
      lastMs.set(cell, endMs);
    }
    return longest;
  }

  /** Counts everything. @param fleet its size and what the run was meant to show */
  summary(fleet: { nodes: number; startMs: number; endMs: number; report: string }): Summary {
    const kills = this.nodes.filter(({ what }) => what === "kill").map(({ atMs }) => atMs);
    const ambiguous = this.calls.filter(({ outcome }) => outcome === "ambiguous");
    const outsideKill = ambiguous.filter(
      ({ startMs, endMs }) => !kills.some((killMs) => endMs >= killMs && startMs <= killMs + killWindowMs),
    );
    const count = (what: NodeRecord["what"]) => this.nodes.filter((record) => record.what === what).length;
    const summary: Summary = {
      held: false,
      nodes: fleet.nodes,
      drains: this.nodes.filter(({ what, exitCode }) => what === "drained" && exitCode === 0).length,
      kills: count("killed"),
      requests: this.calls.length,
      failed: this.calls.filter(({ outcome }) => outcome === "failed").length,
      ambiguous: ambiguous.length,
      ambiguousOutsideKill: outsideKill.length,
      unavailableMs: Math.round(this.unavailableMs(fleet.endMs)),
      acknowledgedWrites: this.calls.filter(({ kind, outcome }) => kind === "write" && outcome === "ok")
        .length,
      lost: this.lostWrites().length,
      duplicated: this.surplusEffects().length,
      retries: this.calls.reduce((sum, { retries }) => sum + retries, 0),
      sockets: this.sockets,
      longestPauseMs: Math.round(this.longestPauseMs()),
      seconds: Math.round((fleet.endMs - fleet.startMs) / 100) / 10,
      report: fleet.report,
    };
    summary.held = breaches(summary, count("drain")).length === 0;
    return summary;
  }
}

/** Each promise that a run broke, in one sentence; none when it held. */
export function breaches(summary: Summary, drainsBegun: number): string[] {
  const broken: string[] = [];
  const expect = (good: boolean, sentence: string) => {
    if (!good) broken.push(sentence);
  };
  expect(summary.failed === 0, `${summary.failed} calls failed`);
  expect(summary.lost === 0, `${summary.lost} acknowledged writes are not in their cells`);
  expect(
    summary.duplicated === 0,
    `${summary.duplicated} effects are in a cell twice, or without a write that may have run`,
  );
  expect(
    summary.ambiguousOutsideKill === 0,
    `${summary.ambiguousOutsideKill} calls were ambiguous, away from any kill`,
  );
  expect(
    summary.drains === drainsBegun,
    `${drainsBegun - summary.drains} of ${drainsBegun} drains did not end with code 0`,
  );
  expect(summary.drains >= summary.nodes, `only ${summary.drains} drains for ${summary.nodes} nodes`);
  expect(summary.kills >= 1 || summary.nodes < 2, "no node was killed");
  expect(summary.requests >= 2_000, `only ${summary.requests} requests were made: use more --seconds`);
  expect(summary.unavailableMs <= 3_000, `a cell was away for ${summary.unavailableMs} ms after the kill`);
  return broken;
}
