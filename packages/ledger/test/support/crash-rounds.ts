/**
 * Kill -9 at every point of every kind of call, then recovery from another process: never two owners, never a lost acknowledged
 * claim, never a reused id with other bytes.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { loadDigest } from "../../src/digest.ts";
import type { LedgerOptions, StoredLedger } from "../../src/ledger.ts";
import { type CrashLine, type CrashOperation, type CrashTask, perform } from "./crash-child.ts";
import { type JudgedOperation, PossibleStates } from "./crash-judge.ts";
import { type CrashScenario, crashScenarios } from "./crash-scenarios.ts";
import { randomNumbers } from "./random.ts";

/** How a store takes part. */
export interface CrashStore {
  /** For what is printed. */
  name: string;
  /** The child program; it calls `runCrashChild`. */
  child: URL;
  /** Opens the ledger at a place, from this process; a place is a fresh `[a-z0-9-]` word for each round. */
  open(place: string, options: LedgerOptions): Promise<StoredLedger>;
  /** Wraps the command that starts the child, for a crash from outside (strace). `task.crashAt` is undefined in a dry run. */
  wrap?(command: readonly string[], task: CrashTask): readonly string[];
  /** How many points the dry run of a scenario had; without it, how often the child called `pass`. */
  countPoints?(run: ChildRun): number;
  /** For the child, beside the environment of this process. */
  env?: Readonly<Record<string, string>>;
  /** Whether it keeps a capacity exactly. */
  capacity: boolean;
  /** Whether a request of a killed child may still arrive while others work already (anything over a network). Default false. */
  lateWrites?: boolean;
  /** Told after each round, for example to remove the place. */
  after?(place: string): Promise<void>;
  /** How many rounds run at once; default 2. */
  parallelCount?: number;
}

/** What became of a child. */
export interface ChildRun {
  lines: readonly CrashLine[];
  stderr: string;
  crashed: boolean;
}

const CHILD_LIMIT_MS = 300_000;

/**
 * Dry runs of all scenarios (or of `only` some), then rounds over their points until so many children were killed; each point once before any a second time.
 * @returns how many were killed, and how many points each scenario has
 * @throws when a promise was broken, with the scenario, the point and the seed
 */
export async function crashRounds(
  store: CrashStore,
  { crashCount, seed, only }: { crashCount: number; seed: number; only?: readonly string[] },
): Promise<{ crashCount: number; points: Record<string, number> }> {
  const scenarios = crashScenarios.filter(
    ({ name, capacity }) => (only?.includes(name) ?? true) && (capacity === undefined || store.capacity),
  );
  const points: Record<string, number> = {};
  const tryRound = async (scenario: CrashScenario, crashAt: number | undefined) => {
    try {
      return await crashRound(store, scenario, crashAt);
    } catch (cause) {
      const when = crashAt === undefined ? "not killed" : `killed at point ${crashAt}`;
      const why = cause instanceof Error ? cause.message : cause;
      throw new TypeError(`${store.name}: ${scenario.name}, ${when} (seed ${seed}): ${why}`, { cause });
    }
  };
  await eachOf(scenarios, store.parallelCount ?? 2, async (scenario) => {
    const run = await tryRound(scenario, undefined);
    const last = run.lines.findLast((line) => "points" in line);
    const count = store.countPoints?.(run) ?? last?.points ?? 0;
    if (count === 0) throw new TypeError(`${store.name}: no crash point in ${scenario.name}: ${run.stderr}`);
    points[scenario.name] = count;
  });
  const all = scenarios.flatMap((scenario) =>
    Array.from({ length: points[scenario.name] ?? 0 }, (_, at) => ({ scenario, crashAt: at + 1 })),
  );
  const rounds = shuffle(all, seed);
  process.stdout.write(
    `crash rounds of ${store.name}: ${crashCount} crashes at ${rounds.length} points, seed ${seed}\n`,
  );
  let crashed = 0;
  // A point may lie behind the end of a run whose timing differs: not counted as a crash.
  for (let pass = 0; crashed < crashCount; pass++) {
    if (pass > crashed) throw new TypeError(`${store.name}: hardly any child was killed`);
    await eachOf(rounds, store.parallelCount ?? 2, async ({ scenario, crashAt }) => {
      if (crashed < crashCount && (await tryRound(scenario, crashAt)).crashed) crashed++;
    });
  }
  return { crashCount: crashed, points };
}

let placeCount = 0;

async function crashRound(
  store: CrashStore,
  scenario: CrashScenario,
  crashAt: number | undefined,
): Promise<ChildRun> {
  const place = `${scenario.name.replaceAll(" ", "-")}-${process.pid}-${++placeCount}`;
  const { bodyHash } = await loadDigest();
  const options = { capacity: scenario.capacity, retirable: true };
  const states = new Map(
    scenario.ids.map((id) => [id, new PossibleStates(id, bodyHash, store.lateWrites ?? false)]),
  );
  const judge = (operations: readonly JudgedOperation[]) => {
    for (const state of states.values()) state.apply(operations);
  };

  if (scenario.before.length > 0) {
    await using ledger = await store.open(place, options);
    for (const operation of scenario.before) judge([await judged(ledger, operation)]);
  }
  const run = await runChild(store, { place, capacity: scenario.capacity, steps: scenario.steps, crashAt });
  if (!run.crashed && !run.lines.some((line) => "points" in line))
    throw new TypeError(`the child failed: ${run.stderr}${JSON.stringify(run.lines.at(-1))}`);
  for (const operations of judgedSteps(scenario, run.lines)) judge(operations);
  await recover(store, place, options, scenario, states, judge);
  await store.after?.(place);
  return run;
}

/** What another process finds and does afterwards: a look, the same claims again from two handles, other bytes, the count. */
async function recover(
  store: CrashStore,
  place: string,
  options: LedgerOptions,
  scenario: CrashScenario,
  states: ReadonlyMap<string, PossibleStates>,
  judge: (operations: readonly JudgedOperation[]) => void,
): Promise<void> {
  await using ledger = await store.open(place, options);
  await using other = await store.open(place, options);
  await Promise.all(scenario.ids.map(async (id) => judge([await judged(ledger, { kind: "lookup", id })])));
  const claims = scenario.ids.map((id) => ({ id, body: scenario.bodies[id] ?? `body of ${id}` }));
  const again = claims.flatMap((claim) => [
    judged(ledger, { kind: "claim", ...claim, owner: "http://recovery-a" }),
    judged(other, { kind: "claim", ...claim, owner: "http://recovery-b" }),
  ]);
  judge(await Promise.all(again));
  for (const { id } of claims)
    judge([await judged(other, { kind: "claim", id, body: "other bytes", owner: "http://recovery-c" })]);
  for (const { id } of claims) judge([await judged(ledger, { kind: "lookup", id })]);
  const present = [...states.values()].filter(({ presence }) => presence === "yes").length;
  const counted = await other.count();
  if (counted !== present) throw new TypeError(`${present} ids have a record, and ${counted} are counted`);
  if (scenario.capacity !== undefined && counted > scenario.capacity)
    throw new TypeError(`${counted} records are above the capacity of ${scenario.capacity}`);
}

/** An operation of this process; here nothing may fail. */
async function judged(ledger: StoredLedger, operation: CrashOperation): Promise<JudgedOperation> {
  const answer = await perform(ledger, operation);
  if (answer.kind === "failed") throw new TypeError(`recovery failed: ${operation.kind}: ${answer.why}`);
  return { operation, answer, aged: false };
}

/** What the child began, with its answers, as far as it came. */
function judgedSteps({ steps }: CrashScenario, lines: readonly CrashLine[]): JudgedOperation[][] {
  return steps.map(({ operations, laterMs }, step) =>
    operations.flatMap((operation, index) => {
      const is = ([s, o]: [number, number]) => s === step && o === index;
      if (!lines.some((line) => "began" in line && is(line.began))) return [];
      const ended = lines.find((line) => "ended" in line && is(line.ended));
      const answer = ended !== undefined && "answer" in ended ? ended.answer : undefined;
      return [{ operation, answer, aged: laterMs !== undefined }];
    }),
  );
}

async function runChild(store: CrashStore, task: CrashTask): Promise<ChildRun> {
  const plain = [
    process.execPath,
    "--conditions=@cellkit/source",
    fileURLToPath(store.child),
    JSON.stringify(task),
  ];
  const [command = "", ...args] = store.wrap?.(plain, task) ?? plain;
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...store.env },
    timeout: CHILD_LIMIT_MS,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  child.once("error", reject);
  // strace ends as its child did: by the same signal, or with 128 + 9.
  child.once("close", (code, signal) => resolve(signal === "SIGKILL" || code === 137));
  const crashed = await promise;
  const lines = stdout.split("\n").filter((line) => line !== "");
  return { lines: lines.map((line) => JSON.parse(line) as CrashLine), stderr, crashed };
}

/** Does something with all items, so many at once, and fails with the first failure after all that had begun have ended. */
async function eachOf<T>(
  items: readonly T[],
  parallelCount: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      try {
        await act(item);
      } catch (error) {
        left.length = 0;
        throw error;
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: parallelCount }, work));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** Another order for each seed. */
function shuffle<T>(items: readonly T[], seed: number): T[] {
  const random = randomNumbers(seed);
  const keyed = items.map((item) => ({ item, at: random() }));
  return keyed.sort((one, other) => one.at - other.at).map(({ item }) => item);
}
