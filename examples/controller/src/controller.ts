// A controller whose work runs once. What has to outlive it lies in a directory: the exact bytes of each request, written before the
// first try, and what became of it. Whoever starts over that directory goes on where the last one was.
import { open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  ExecutionError,
  type ExecutionRequestInput,
  parseJson,
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

/** Submits requests and keeps their outcomes. One controller a directory. */
export class Controller {
  readonly #router: RouterClient;
  readonly #directory: string;
  readonly #retryMs: number;

  /** @param options `retryMs`: the pause after the client gave up for the moment, as in a long outage of the router. Default 5,000 */
  constructor(router: RouterClient, directory: string, { retryMs = 5_000 }: { retryMs?: number } = {}) {
    this.#router = router;
    this.#directory = directory;
    this.#retryMs = retryMs;
  }

  /**
   * Runs a request once, however often and by whichever process this is called for its id: from the second time on, the kept bytes count.
   * @throws ExecutionRequestError for a request that no dispatcher would take; the signal's reason: then `resume` goes on with it
   */
  async run(request: ExecutionRequestInput, signal?: AbortSignal): Promise<Outcome> {
    const kept = await this.#read(`${request.id}.request`);
    const submission = this.#router.prepare(kept ?? request);
    if (kept === undefined) await this.#write(`${submission.id}.request`, submission.bytes);
    return this.#finish(submission, signal);
  }

  /** Goes on with everything that was begun and has no outcome; answers those. */
  async resume(signal?: AbortSignal): Promise<ReadonlyMap<string, Outcome>> {
    const names = new Set(await readdir(this.#directory));
    const open = [...names].flatMap((name) => {
      const id = /^(.+)\.request$/.exec(name)?.[1];
      return id === undefined || names.has(`${id}.outcome`) ? [] : [id];
    });
    const outcomes = open.map(async (id) => {
      const submission = this.#router.prepare(await readFile(join(this.#directory, `${id}.request`)));
      return [id, await this.#finish(submission, signal)] as const;
    });
    return new Map(await Promise.all(outcomes));
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

  async #finish(submission: Submission, signal: AbortSignal | undefined): Promise<Outcome> {
    const before = await this.outcome(submission.id);
    if (before !== undefined) return before;
    const outcome = await this.#settle(submission, signal);
    await this.#write(`${submission.id}.outcome`, Buffer.from(stringifyJson(outcome)));
    return outcome;
  }

  /** Every doubt is resolved by the same id and the same bytes; a new id could run the work twice. */
  async #settle(submission: Submission, signal: AbortSignal | undefined): Promise<Outcome> {
    for (;;) {
      try {
        await submission.send({ signal });
        return { kind: "done", record: await submission.result({ signal }) };
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof ExecutionError)) throw error;
        const { code, sent, next } = error;
        if (next !== "same-id") return { kind: "stuck", code, sent, next };
      }
      await pause(this.#retryMs, undefined, { ...(signal === undefined ? {} : { signal }) });
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

  /** The file is there whole, or not at all, also after a power cut. */
  async #write(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.#directory, name);
    const file = await open(`${path}.new`, "w", 0o600);
    await file.writeFile(bytes);
    await file.sync();
    await file.close();
    await rename(`${path}.new`, path);
    const directory = await open(this.#directory);
    await directory.sync();
    await directory.close();
  }
}
