// What a benchmark file exports (`benchmarks`), and how its rounds become one ratio. A bench file need not import
// this module: it satisfies the type by shape, and the runner checks it.

/** Both sides of a comparison, ready to be measured any number of times. */
export interface Comparison {
  /** Measures our side once and answers the figure in the benchmark's unit. */
  subject(): Promise<number>;
  /** Measures the peer or the physical floor once, in the same unit. */
  against(): Promise<number>;
  /** Frees what setup made. */
  close(): Promise<void>;
}

/** One comparison of a hot path with a peer or the physical floor. */
export interface Benchmark {
  /** `package/path`, as in `npm run bench -- bucket/conditional-put`. */
  name: string;
  /** What of ours is measured. */
  subject: string;
  /** What it is held against. */
  against: string;
  /** What one figure counts, for example `writes/s` or `CPU us/request`. */
  unit: string;
  /** How many paired rounds are measured (one more is run first and dropped). */
  roundCount: number;
  /** What a reader must know to repeat it: sizes, connections, processes. */
  conditions: string;
  setup(): Promise<Comparison>;
}

/** One line of the result file. */
export interface Result {
  name: string;
  subject: string;
  against: string;
  unit: string;
  /** Median over the paired rounds of subject / against. */
  ratio: number;
  /** Lower quartile of those ratios. */
  low: number;
  /** Upper quartile of those ratios. */
  high: number;
  rounds: number;
  conditions: string;
  /** Median figure of our side, in `unit`. */
  subjectFigure: number;
  /** Median figure of the other side, in `unit`. */
  againstFigure: number;
}

/** The value below which a share of the sorted values lies, between its neighbours in proportion. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** Runs one benchmark: a round to warm up, then paired rounds whose order alternates. */
export async function measure(benchmark: Benchmark, progress: (round: number) => void): Promise<Result> {
  const comparison = await benchmark.setup();
  const subject: number[] = [];
  const against: number[] = [];
  try {
    await comparison.against();
    await comparison.subject();
    for (let round = 0; round < benchmark.roundCount; round += 1) {
      progress(round);
      const first = round % 2 === 0;
      if (first) subject.push(await comparison.subject());
      against.push(await comparison.against());
      if (!first) subject.push(await comparison.subject());
    }
  } finally {
    await comparison.close();
  }
  const ratios = subject.map((figure, round) => figure / (against[round] ?? Number.NaN));
  return {
    name: benchmark.name,
    subject: benchmark.subject,
    against: benchmark.against,
    unit: benchmark.unit,
    ratio: quantile(ratios, 0.5),
    low: quantile(ratios, 0.25),
    high: quantile(ratios, 0.75),
    rounds: ratios.length,
    conditions: benchmark.conditions,
    subjectFigure: quantile(subject, 0.5),
    againstFigure: quantile(against, 0.5),
  };
}
