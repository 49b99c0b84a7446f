import type { Dispatcher } from "undici";
import type { AttemptRun } from "./attempt-run.ts";

/** A response that was held back and turned out to be the caller's: played to its handler, in order, at its pace. */
export class HeldResponse {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #controller: Dispatcher.DispatchController;
  readonly #run: AttemptRun;
  readonly #error: Error | undefined;
  readonly #onDone: (error: Error | undefined) => void;
  #paused = false;
  #flowing = false;
  #done = false;

  /** @param error what broke the response off, when it did */
  constructor(
    handler: Dispatcher.DispatchHandler,
    controller: Dispatcher.DispatchController,
    run: AttemptRun,
    error: Error | undefined,
    onDone: (error: Error | undefined) => void,
  ) {
    this.#handler = handler;
    this.#controller = controller;
    this.#run = run;
    this.#error = error;
    this.#onDone = onDone;
  }

  /** Gives the headers, then what may flow. */
  start(): void {
    const { status, headers, statusText } = this.#run;
    this.#flowing = true;
    try {
      this.#handler.onResponseStart?.(this.#controller, status, headers, statusText);
    } catch (error) {
      this.fail(error as Error);
    }
    this.#flowing = false;
    if (this.#error === undefined) this.#continue();
    // undici's fetch loses an error that comes in the turn of the headers: its body would never end.
    else setImmediate(() => this.#continue());
  }

  #continue(): void {
    if (!this.#paused) this.resume();
  }

  get paused(): boolean {
    return this.#paused;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    if (this.#flowing || this.#done) return;
    this.#flowing = true;
    try {
      this.#flow();
    } catch (error) {
      this.fail(error as Error);
    }
    this.#flowing = false;
  }

  /** Ends it with an error; nothing when it has ended. */
  fail(error: Error): void {
    if (this.#done) return;
    this.#done = true;
    this.#handler.onResponseError?.(this.#controller, error);
    this.#onDone(error);
  }

  #flow(): void {
    const { chunks = [] } = this.#run;
    while (!this.#paused && !this.#done) {
      const chunk = chunks.shift();
      if (chunk !== undefined) {
        this.#handler.onResponseData?.(this.#controller, chunk);
      } else if (this.#error !== undefined) {
        this.fail(this.#error);
      } else {
        this.#done = true;
        this.#handler.onResponseEnd?.(this.#controller, this.#run.trailers ?? {});
        this.#onDone(undefined);
      }
    }
  }
}
