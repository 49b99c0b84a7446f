// A controller whose work runs once. What has to outlive it lies in a directory: the exact bytes of each request, written before the
// first try, and what became of it. Whoever starts over that directory goes on where the last one was.
import { randomUUID } from "node:crypto";
import { link, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  ExecutionError,
  type ExecutionRequestInput,
  parseJson,
  type RequestSource,
  type RouterClient,
  recordSchema,
  type Submission,
  stringifyJson,
  type TerminalRecord,
} from "@cellkit/execution";

/** What became of a request: the final record, or why somebody has to look. */
export type Outcome =
  | { readonly kind: "done"; readonly record: TerminalRecord }
  | { readonly kind: "stuck"; readonly code: string; readonly sent: string; readonly next: string };

/** What `resume` tells of an id: what became of it, or why it could not go on with it; then it has no outcome yet. */
export type Resumed = Outcome | { readonly kind: "failed"; readonly error: unknown };

/** Options of {@link Controller}. */
export interface ControllerOptions {
  /** The pause after the client gave up for the moment, as in a long outage of the router. @default 5,000 */
  readonly retryMs?: number;
  /** Stops it: whatever it waits for rejects with the signal's reason, and another controller goes on with `resume`. */
  readonly signal?: AbortSignal;
}

/** Submits requests and keeps their outcomes. One controller a directory. */
export class Controller {
  readonly #router: RouterClient;
  readonly #directory: string;
  readonly #retryMs: number;
  readonly #signal: AbortSignal | undefined;
  readonly #settling = new Map<string, Promise<Outcome>>();

  constructor(router: RouterClient, directory: string, { retryMs = 5_000, signal }: ControllerOptions = {}) {
    this.#router = router;
    this.#directory = directory;
    this.#retryMs = retryMs;
    this.#signal = signal;
  }

  /**
   * Runs a request once, however often and by whichever process this is called for its id: the bytes that were kept first count.
   * @throws ExecutionRequestError for a request that no dispatcher would take; the signal's reason
   */
  run(request: ExecutionRequestInput): Promise<Outcome> {
    return this.#once(request.id, async () => request);
  }

  /** Goes on with everything that was begun and has no outcome, and tells of each; one that fails keeps none of the others back. */
  async resume(): Promise<ReadonlyMap<string, Resumed>> {
    const names = new Set(await readdir(this.#directory));
    const begun = [...names].flatMap((name) => /^(.+)\.request$/.exec(name)?.[1] ?? []);
    const ids = begun.filter((id) => !names.has(`${id}.outcome`));
    const kept = (id: string) => readFile(join(this.#directory, `${id}.request`));
    const told = await Promise.allSettled(ids.map((id) => this.#once(id, () => kept(id))));
    this.#signal?.throwIfAborted();
    const resumed = told.map(
      (each): Resumed => (each.status === "fulfilled" ? each.value : { kind: "failed", error: each.reason }),
    );
    return new Map(ids.map((id, at) => [id, resumed[at] as Resumed]));
  }

  /** What became of an id, as far as it is kept. */
  async outcome(id: string): Promise<Outcome | undefined> {
    const bytes = await this.#read(`${id}.outcome`);
    if (bytes === undefined) return undefined;
    const outcome = parseJson(bytes.toString()) as Outcome;
    // The schema gives 64-bit integers the type that they have in records from the router.
    return outcome.kind === "done"
      ? { kind: "done", record: recordSchema.parse(outcome.record) as TerminalRecord }
      : outcome;
  }

  /** Whoever asks for an id while it is on its way waits for the same. */
  #once(id: string, source: () => Promise<RequestSource>): Promise<Outcome> {
    const settling = this.#settling.get(id) ?? this.#settle(source).finally(() => this.#settling.delete(id));
    this.#settling.set(id, settling);
    return settling;
  }

  async #settle(source: () => Promise<RequestSource>): Promise<Outcome> {
    const submission = this.#router.prepare(await source());
    const { id, bytes } = submission;
    const before = await this.outcome(id);
    if (before !== undefined) return before;
    const kept = await this.#keep(`${id}.request`, bytes);
    const outcome = await this.#outcomeOf(kept === undefined ? submission : this.#router.prepare(kept));
    await this.#keep(`${id}.outcome`, Buffer.from(stringifyJson(outcome)));
    return outcome;
  }

  /** Every doubt is resolved by the same id and the same bytes; a new id could run the work twice. */
  async #outcomeOf(submission: Submission): Promise<Outcome> {
    const signal = this.#signal;
    for (;;) {
      signal?.throwIfAborted();
      try {
        await submission.send({ signal });
        return { kind: "done", record: await submission.result({ signal }) };
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof ExecutionError)) throw error;
        const { code, sent, next } = error;
        if (next !== "same-id") return { kind: "stuck", code, sent, next };
      }
      // It rejects when it is stopped; the loop says why.
      await pause(this.#retryMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }

  async #read(name: string): Promise<Buffer | undefined> {
    try {
      return await readFile(join(this.#directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /**
   * Keeps bytes under a name; answers those that were kept there before, which stay. The file is there whole, or not at all, also after a
   * power cut: it is written aside, and gets its name when it is on disk. Whoever is killed before that leaves a file that nobody reads.
   */
  async #keep(name: string, bytes: Uint8Array): Promise<Uint8Array | undefined> {
    const before = await this.#read(name);
    if (before !== undefined) return before;
    const aside = join(this.#directory, `${name}.${randomUUID()}`);
    try {
      await synced(aside, "wx", (file) => file.writeFile(bytes));
      await link(aside, join(this.#directory, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      return await this.#read(name);
    } finally {
      await rm(aside, { force: true });
    }
    await synced(this.#directory, "r");
    return undefined;
  }
}

type FileHandle = Awaited<ReturnType<typeof open>>;

/** Opens a file, or a directory, and closes it again when what was done to it is on disk, or failed. */
async function synced(path: string, flags: string, write?: (file: FileHandle) => Promise<void>) {
  const file = await open(path, flags, 0o600);
  try {
    await write?.(file);
    await file.sync();
  } finally {
    await file.close();
  }
}
