import type { Knowledge } from "./core/course.ts";
import type { ExecutionRequest } from "./core/execution-request.ts";
import { type ExecutionRecord, recordSchema } from "./core/record.ts";
import { callRouter } from "./router-calls.ts";
import { ofThisRun, Run, type SharedByHandles, type WaitOptions } from "./run.ts";

/** What a submission consists of. */
export interface FrozenRequest {
  readonly id: string;
  readonly bytes: Uint8Array;
  /** The version that the bytes name; undefined when they name none. */
  readonly apiVersion: string | undefined;
  /** Read from the bytes; undefined when they are newer than this package knows. */
  readonly request: ExecutionRequest | undefined;
  readonly pin: string | undefined;
}

/** How to submit. */
export interface PrepareOptions {
  /** The one backend that may own it, exactly as the router's list has it. Default: the router chooses. */
  readonly pin?: string | undefined;
  /**
   * Whether these bytes may have been sent before, by a process that has ended or by another. Then `sent` of an error is
   * `maybe` until a router says more. Default: true for bytes, which are mostly kept ones, false for a request object.
   */
  readonly resumed?: boolean | undefined;
}

/**
 * A request with its exact bytes. Keep `bytes` with the id when the caller may have to submit again after a restart: a router
 * compares bytes, and the same JSON written anew is another request to it.
 */
export class Submission extends Run {
  readonly #options: SharedByHandles;
  readonly #frozen: FrozenRequest;

  /** @internal made by {@link RouterClient} */
  constructor(options: SharedByHandles, frozen: FrozenRequest, known: Knowledge) {
    super(options, frozen.id, known, frozen);
    this.#options = options;
    this.#frozen = frozen;
  }

  /** A copy of the bytes that are sent. */
  get bytes(): Uint8Array {
    return this.#frozen.bytes.slice();
  }

  /**
   * Sends the bytes until a router answers with a record, which may be of an earlier submission of the same bytes. Each try
   * has the same id and the same bytes. May be called again after any failure whose `next` is `same-id`.
   *
   * @returns the record as it was when the submission was accepted or found
   * @throws {@link CallError}, {@link DeadlineError}, {@link CallAbortedError}; `sent` tells of all tries together
   */
  send(options: WaitOptions = {}): Promise<ExecutionRecord> {
    const { bytes, pin } = this.#frozen;
    const { submitTimeoutMs } = this.#options;
    return this.course("submit", options, submitTimeoutMs, async (timeoutMs) => {
      const call = {
        purpose: "submit",
        method: "POST",
        path: "/v1/executions",
        body: bytes,
        pin,
        timeoutMs,
      } as const;
      return ofThisRun(
        this.id,
        await callRouter(this.#options, { ...call, signal: options.signal }, recordSchema),
      );
    });
  }
}
